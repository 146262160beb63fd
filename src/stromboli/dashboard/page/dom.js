// Elements made from text. Nothing here, or anywhere on this page, turns text into markup: names and messages come from
// users of the cluster.

/** An element. `props`: attributes; `class`, `text`; `on` is a map of listeners; false and null are left out. */
export function el(tag, props = {}, ...children) {
  const node = tag === "svg" || tag === "path" || tag === "rect" || tag === "title" || tag === "line"
    ? document.createElementNS("http://www.w3.org/2000/svg", tag)
    : document.createElement(tag);
  for (const [name, value] of Object.entries(props)) {
    if (value === null || value === undefined || value === false) continue;
    if (name === "text") node.textContent = value;
    else if (name === "on") for (const [event, listener] of Object.entries(value)) node.addEventListener(event, listener);
    else if (name === "vars") for (const [key, amount] of Object.entries(value)) node.style.setProperty(key, amount);
    else node.setAttribute(name, value === true ? "" : value);
  }
  node.append(...children.flat().filter((child) => child !== null && child !== undefined && child !== false));
  return node;
}

/** Make the children of `parent` those of `items`, keeping the elements of items that have not changed. Where an element
 * is replaced that had the focus, the new one gets it. */
export function keyed(parent, items, keyOf, render, signatureOf = JSON.stringify) {
  const known = new Map([...parent.children].map((child) => [child.dataset.key, child]));
  let place = parent.firstElementChild;
  for (const item of items) {
    const key = String(keyOf(item));
    const signature = signatureOf(item);
    let node = known.get(key);
    known.delete(key);
    if (!node || node.signature !== signature) {
      const made = render(item);
      made.dataset.key = key;
      made.signature = signature;
      if (node) {
        if (place === node) place = node.nextElementSibling;
        replace(node, made);
      }
      node = made;
    }
    if (node === place) place = place.nextElementSibling;
    else parent.insertBefore(node, place);
  }
  for (const left of known.values()) left.remove();
}

function replace(old, made) {
  const active = document.activeElement;
  const inside = old.contains(active);
  const name = inside && active !== old ? active.dataset.focus : null;
  old.replaceWith(made);
  if (!inside) return;
  const again = name ? made.querySelector(`[data-focus="${CSS.escape(name)}"]`) : made;
  if (again) again.focus({ preventScroll: true });
}

/** Set the text of an element, without touching it when it is the same (so that selections stay). */
export function say(node, text) {
  if (node.textContent !== text) node.textContent = text;
}

/** A moment that is shown as an age, kept up to date by `tick`. */
export function age(seconds) {
  if (!seconds) return el("span", { class: "muted", text: "–" });
  const moment = new Date(seconds * 1000);
  return el("time", { datetime: moment.toISOString(), title: moment.toLocaleString(), "data-at": seconds, text: ago(seconds) });
}

let skew = 0; // seconds that the server's clock is ahead of ours

export function heardClock(date) {
  const there = Date.parse(date) / 1000;
  if (there) skew = there - Date.now() / 1000;
}

export function now() {
  return Date.now() / 1000 + skew;
}

export function ago(seconds) {
  const passed = Math.max(0, Math.floor(now() - seconds));
  if (passed < 120) return `${passed}s`;
  if (passed < 7200) return `${Math.floor(passed / 60)}m`;
  if (passed < 172800) return `${Math.floor(passed / 3600)}h`;
  return `${Math.floor(passed / 86400)}d`;
}

export function tick() {
  for (const node of document.querySelectorAll("time[data-at]")) say(node, ago(Number(node.dataset.at)));
}

export function counted(count, thing) {
  return `${count.toLocaleString("en")} ${thing}${count === 1 ? "" : "s"}`;
}

export function percent(part) {
  return `${Math.round(part * 100)}%`;
}

/** A state with its colour; the word is always there. */
export function chip(state) {
  return el("span", { class: `chip s-${kindOf(state)}`, text: state });
}

function kindOf(state) {
  if (["Running", "Open"].includes(state)) return "run";
  if (["Pending", "Inqueue", "Restarting"].includes(state)) return "wait";
  if (["Completed", "Completing"].includes(state)) return "done";
  if (["Failed", "Warning", "Aborting", "Aborted", "Terminating", "Terminated"].includes(state)) return "bad";
  return "other";
}

/** What to show where there is nothing. */
export function empty(text, ...commands) {
  return el("div", { class: "empty" }, el("p", { text }), ...commands.map((command) => el("pre", {}, el("code", { text: command }))));
}

/** Why something waits. */
export function reason(why) {
  if (!why.reason) return null;
  return el("div", { class: "why" },
    el("strong", { text: why.reason }), " ", el("span", { class: "message", text: why.message }),
    why.step ? el("div", { class: "step", text: why.step }) : null);
}
