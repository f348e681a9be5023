/** Where the page begins: reads its address, names the session in it, and starts the app. */
import { App } from "./app.ts";
import { installDebugHook } from "./debug-hook.ts";
import { listenerAddress, routeOf, sessionAddress, speakerAddress, tokenOf } from "./route.ts";
import { byId } from "./view/dom.ts";

const address = new URL(location.href);
const route = routeOf(address);
history.replaceState(null, "", sessionAddress(address, route.session));
byId("session-name", HTMLElement).textContent = route.session;
const link = byId("listen-link", HTMLAnchorElement);
// The other way in: listeners for a speaker's session, a speaker for a listener's.
link.href = route.isListener
  ? speakerAddress(address, route.session).href
  : listenerAddress(address, route.session).href;
if (route.isListener) link.textContent = "Speak in this session";
document.documentElement.dataset.role = route.isListener ? "listener" : "speaker";

const app = new App(route, tokenOf(address));
installDebugHook(app, route.session);
app.start();
// A link with a token that is opened in this very tab.
addEventListener("hashchange", () => {
  const next = new URL(location.href);
  const token = tokenOf(next);
  history.replaceState(null, "", sessionAddress(next, route.session));
  if (token !== null) app.useToken(token);
});
