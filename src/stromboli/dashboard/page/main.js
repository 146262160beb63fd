// Which view is shown, and how it is kept up to date: word of changes comes as server-sent events, the view is fetched
// anew then, and every few seconds in any case. Nothing is ever reloaded.

import { ago, el, heardClock, now, say, tick } from "./dom.js";
import { Overview } from "./overview.js";
import { QueueTree } from "./queues.js";
import { EVENTS, JOBS, PODGROUPS, PagedTable } from "./tables.js";
import { Topology } from "./topology.js";

const LOOK_AGAIN = 5000; // milliseconds
const PATIENCE = 15000;

const main = document.getElementById("main");
let shown = null; // {name, params, urls(), update(answer), root}
let lost = 0; // when this page's server stopped answering
let connection = null;

const TITLES = { overview: "Overview", queues: "Queues", jobs: "Jobs", podgroups: "PodGroups", topology: "Topology", events: "Events" };

function address() {
  const [name, query] = location.hash.slice(1).split("?", 2);
  return { name: TITLES[name] ? name : "overview", params: new URLSearchParams(query || "") };
}

/** Change what is filtered: the address changes with it, and no step is added to the history. */
function replaceAddress(name, params) {
  const query = params.toString();
  history.replaceState(null, "", `#${name}${query ? `?${query}` : ""}`);
}

const search = (name) => (text) => replaceAddress(name, new URLSearchParams(text ? { search: text } : {}));

function make(name, params) {
  if (name === "overview") {
    const page = new Overview();
    return { page, urls: () => ["api/view", "api/queues"] };
  }
  if (name === "queues") {
    const page = new QueueTree({ search: params.get("search") || "", onSearch: search(name) });
    return { page: { root: page.root, update: ({ queues }) => page.update(queues) }, urls: () => ["api/queues"] };
  }
  if (name === "topology") {
    return { page: new Topology({ search: params.get("search") || "", onSearch: search(name) }), urls: () => ["api/topology"] };
  }
  const kind = { jobs: JOBS, podgroups: PODGROUPS, events: EVENTS }[name];
  const page = new PagedTable(kind, { params, navigate: (changed) => { replaceAddress(name, changed); load(); } });
  return { page, urls: () => [page.url()] };
}

function show() {
  const { name, params } = address();
  for (const link of document.querySelectorAll("#views a")) {
    const current = link.getAttribute("href") === `#${name}`;
    if (current) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  document.title = `${TITLES[name]} · Stromboli`;
  shown = { name, ...make(name, params) };
  main.replaceChildren(el("h1", { class: name === "overview" ? "hidden" : "", text: TITLES[name] }), el("p", { class: "muted loading", text: "Loading…" }));
  load();
}

let loading = false;
let again = false;

/** Fetch what is shown and show it. At most one at a time; who asks meanwhile is answered by one more. */
async function load() {
  if (loading) { again = true; return; }
  loading = true;
  const view = shown;
  try {
    const answers = await Promise.all(view.urls().map(fetched));
    heard();
    connection = answers[0].connection;
    if (view === shown) place(view, Object.assign({}, ...answers));
  } catch (error) {
    if (!lost) lost = now();
    console.warn(error);
  }
  loading = false;
  notices();
  if (again || view !== shown) { again = false; load(); }
}

function place(view, answer) {
  view.page.update(answer);
  if (!view.page.root.isConnected) {
    main.querySelector(".loading")?.remove();
    main.append(view.page.root);
  }
  document.body.dataset.loaded = view.name;
}

async function fetched(url) {
  const response = await fetch(url, { signal: AbortSignal.timeout(PATIENCE) });
  if (!response.ok) throw new Error(`${url}: ${response.status}`);
  heardClock(response.headers.get("Date"));
  return response.json();
}

function heard() {
  lost = 0;
}

// -- what is said of the connection ----------------------------------------------------------------------------------

function notices() {
  const lines = [];
  if (lost) lines.push(notice(`The dashboard does not answer since ${clock(lost)}. What is shown is from then.`, "", lost));
  else if (connection?.since) lines.push(notice(`Disconnected from the API server since ${clock(connection.since)}. What is shown is from then.`, connection.error, connection.since));
  else for (const problem of connection?.problems || []) lines.push(notice(`${problem.resource} may be out of date.`, problem.message, 0));
  const box = document.getElementById("notices");
  const signature = lines.map((line) => line.dataset.signature).join("\n");
  if (box.signature !== signature) { box.signature = signature; box.replaceChildren(...lines); }
  const pill = document.getElementById("connection");
  const bad = lost || connection?.since;
  pill.classList.toggle("bad", Boolean(bad));
  pill.classList.toggle("good", Boolean(connection && !bad));
  say(pill, bad ? `disconnected for ${ago(bad)}` : connection ? connection.server.replace(/^https?:\/\//, "").replace(/\/$/, "") : "connecting");
}

function notice(text, detail, since) {
  return el("div", { class: "notice", "data-signature": text + detail }, el("strong", { text }), detail ? el("span", { class: "message", text: ` ${detail}` }) : null);
}

function clock(seconds) {
  return new Date(seconds * 1000).toLocaleTimeString();
}

// -- word of changes -------------------------------------------------------------------------------------------------

// Browsers open no more than six connections to a server: one that nobody looks at must not keep any, or the seventh
// window gets no answer at all.
let source = null;

function listen() {
  if (source || document.hidden) return;
  const mine = new EventSource("api/changes");
  source = mine;
  mine.onmessage = () => load();
  mine.onerror = () => {
    if (mine.readyState !== EventSource.CLOSED || source !== mine) return; // it tries again by itself
    source = null;
    setTimeout(listen, PATIENCE);
  };
}

function silence() {
  source?.close();
  source = null;
}

document.addEventListener("visibilitychange", () => {
  if (document.hidden) silence();
  else { listen(); load(); }
});
window.addEventListener("pagehide", silence);
window.addEventListener("pageshow", listen);

// -- colours ---------------------------------------------------------------------------------------------------------

const THEMES = { auto: "Auto", light: "Light", dark: "Dark" };

function theme(choice) {
  const button = document.getElementById("theme");
  if (choice === "auto") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = choice;
  say(button, THEMES[choice]);
  button.setAttribute("aria-label", `Colours: ${choice === "auto" ? "automatic" : choice}`);
  button.dataset.choice = choice;
}

function remembered() {
  try {
    const choice = localStorage.getItem("stromboli-theme");
    return THEMES[choice] ? choice : "auto";
  } catch {
    return "auto";
  }
}

document.getElementById("theme").addEventListener("click", (event) => {
  const order = Object.keys(THEMES);
  const next = order[(order.indexOf(event.currentTarget.dataset.choice) + 1) % order.length];
  theme(next);
  try { localStorage.setItem("stromboli-theme", next); } catch { /* it lasts as long as the page */ }
});

document.querySelector(".skip").addEventListener("click", (event) => { event.preventDefault(); main.focus(); });

theme(remembered());
window.addEventListener("hashchange", show);
show();
listen();
setInterval(load, LOOK_AGAIN);
setInterval(() => { tick(); notices(); }, 1000);
