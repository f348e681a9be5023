// What runs in the browser: it asks its own server for a token whenever it needs one, and knows no key.
import { connect } from "/client/index.js";

const show = (id, text) => {
  document.getElementById(id).textContent = text;
};

async function askServer() {
  const answer = await fetch("/voice-token", { method: "POST" });
  if (!answer.ok) throw new Error(`the app's server answered ${answer.status}`);
  return answer.json();
}

try {
  const { gateway, session } = await askServer();
  const connection = await connect({
    baseUrl: gateway,
    session,
    settings: { format: "none", events: ["words"] },
    token: async () => (await askServer()).token,
    reconnect: true,
  });
  connection.on("words", ({ words }) => {
    const before = document.getElementById("words").textContent;
    show("words", `${before} ${words.map((word) => word.text).join(" ")}`.trim());
  });
  connection.on("refreshed", () => show("status", "Connected, with a new token"));
  connection.closed.then(({ code, reason }) => show("status", `Closed: ${code} ${reason}`));
  document.querySelector("form").addEventListener("submit", (event) => {
    event.preventDefault();
    show("words", "");
    connection.say(new FormData(event.target).get("text")).catch((error) => show("status", error.message));
  });
  show("status", "Connected");
} catch (error) {
  show("status", error.message);
}
