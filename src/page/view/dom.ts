/** The two things that every part of the page does with the document: find an element of a known kind, make one. */

/** Throws where index.html has no such element: the two files belong together. */
export function byId<T extends HTMLElement>(id: string, kind: new () => T): T {
  const element = document.getElementById(id);
  if (element instanceof kind) return element;
  throw new Error(
    `Element #${id}: ${element === null ? "is missing" : "is of another kind"}, expected ${kind.name}`,
  );
}

export interface ElementParts {
  readonly class?: string;
  readonly text?: string;
  readonly attributes?: Readonly<Record<string, string>>;
  readonly children?: readonly (Node | string)[];
}

export function make<K extends keyof HTMLElementTagNameMap>(
  tag: K,
  parts: ElementParts = {},
): HTMLElementTagNameMap[K] {
  const element = document.createElement(tag);
  if (parts.class !== undefined) element.className = parts.class;
  if (parts.text !== undefined) element.textContent = parts.text;
  for (const [name, value] of Object.entries(parts.attributes ?? {})) element.setAttribute(name, value);
  element.append(...(parts.children ?? []));
  return element;
}
