// The tree of queues: a treegrid with one bar for each resource.

import { chip, counted, el, empty, keyed, say } from "./dom.js";

const MORE = 200;
const OPEN_ALL_UP_TO = 60;

/** A tree that keeps what is open, and where the keyboard is. `few` is how many rows are shown at first. */
export class QueueTree {
  constructor({ few = MORE, search = "", onSearch = null } = {}) {
    this.opened = new Map();
    this.few = few;
    this.shown = few;
    this.search = search;
    this.rows = [];
    this.current = "";
    this.head = el("tr");
    this.body = el("tbody", { on: { keydown: (event) => this.key(event), click: (event) => this.click(event) } });
    this.table = el("table", { role: "treegrid", "aria-label": "Queues", class: "queues" }, el("thead", {}, this.head), this.body);
    this.more = el("button", { type: "button", class: "more", on: { click: () => { this.shown += MORE; this.draw(); } } });
    this.none = el("div");
    this.count = el("span", { class: "muted", role: "status" });
    this.tools = this.toolbar(onSearch);
    this.root = el("div", {}, this.tools, legend(), el("div", { class: "scroll" }, this.table), this.none, this.more);
  }

  toolbar(onSearch) {
    if (!onSearch) return null;
    const box = el("input", { type: "search", placeholder: "Find a queue", "aria-label": "Find a queue", id: "queue-search" });
    box.value = this.search;
    box.addEventListener("input", () => { this.search = box.value; this.shown = this.few; onSearch(box.value); this.draw(); });
    const all = (open) => () => { for (const row of this.rows) this.opened.set(row.name, open); this.draw(); };
    return el("div", { class: "tools" }, box,
      el("button", { type: "button", on: { click: all(true) }, text: "Open all" }),
      el("button", { type: "button", on: { click: all(false) }, text: "Close all" }),
      this.count);
  }

  update(rows) {
    this.rows = rows;
    this.byName = new Map(rows.map((row) => [row.name, row]));
    this.children = new Map();
    for (const row of rows) {
      if (!row.depth) continue;
      if (!this.children.has(row.parent)) this.children.set(row.parent, []);
      this.children.get(row.parent).push(row.name);
    }
    this.draw();
  }

  isOpen(row) {
    if (this.search) return true;
    const chosen = this.opened.get(row.name);
    return chosen ?? (this.rows.length <= OPEN_ALL_UP_TO || row.depth === 0);
  }

  /** Rows that are not hidden by a closed parent or by the search, in order. */
  visible() {
    const wanted = this.matches();
    const found = [];
    let closed = Infinity;
    for (const row of this.rows) {
      if (row.depth > closed) continue;
      closed = Infinity;
      if (wanted && !wanted.has(row.name)) continue;
      found.push(row);
      if (!this.isOpen(row)) closed = row.depth;
    }
    return found;
  }

  matches() {
    const text = this.search.trim().toLowerCase();
    if (!text) return null;
    const wanted = new Set();
    for (const row of this.rows) {
      if (!row.name.toLowerCase().includes(text)) continue;
      for (let at = row; at && !wanted.has(at.name); at = at.depth ? this.byName.get(at.parent) : null) wanted.add(at.name);
    }
    return wanted;
  }

  draw() {
    const resources = this.rows.length ? this.rows[0].uses.map((use) => use.resource) : [];
    keyed(this.head, ["Queue", "Gangs", ...resources], String, (title) => el("th", { scope: "col", text: title }));
    const all = this.visible();
    const rows = all.slice(0, this.shown);
    if (!rows.some((row) => row.name === this.current)) this.current = rows.length ? rows[0].name : "";
    const drawn = rows.map((row) => ({ row, open: this.isOpen(row), leaf: !this.children.has(row.name), current: row.name === this.current, ...this.place(row) }));
    keyed(this.body, drawn, (item) => item.row.name, (item) => this.row(item));
    const left = all.length - rows.length;
    this.more.hidden = left <= 0;
    say(this.more, `Show ${Math.min(left, MORE)} more of ${left}`);
    say(this.count, this.search ? `${all.length} of ${counted(this.rows.length, "queue")}` : counted(this.rows.length, "queue"));
    this.none.replaceChildren(...(rows.length ? [] : [this.rows.length ? empty("No queue has that in its name.") : empty("No queues yet.", "kubectl get queues")]));
  }

  place(row) {
    const siblings = row.depth ? this.children.get(row.parent) : null;
    return siblings ? { position: siblings.indexOf(row.name) + 1, size: siblings.length } : { position: 1, size: 1 };
  }

  row({ row, open, leaf, current, position, size }) {
    const details = [`weight ${row.weight}`, row.priority ? `priority ${row.priority}` : "", row.reclaimable ? "" : "not reclaimable"];
    const name = el("th", { scope: "row", role: "rowheader", class: "name" },
      el("div", { class: "indent", vars: { "--depth": row.depth } },
        el("span", { class: leaf ? "twig leaf" : open ? "twig open" : "twig", "aria-hidden": "true" }),
        el("div", {}, el("span", { class: "title", text: row.name }), " ",
          row.state === "Open" ? null : chip(row.state), " ",
          el("span", { class: "muted small", text: details.filter(Boolean).join(", ") }))));
    return el("tr", {
      role: "row", tabindex: current ? 0 : -1, "aria-level": row.depth + 1, "aria-posinset": position, "aria-setsize": size,
      "aria-expanded": leaf ? null : String(open), "data-queue": row.name,
    }, name, el("td", { role: "gridcell", class: "gangs" }, gangs(row, leaf)),
    ...row.uses.map((use) => el("td", { role: "gridcell", class: "use" }, bar(use))));
  }

  click(event) {
    const line = event.target.closest("tr");
    if (!line || event.target.closest("a")) return;
    const row = this.byName.get(line.dataset.queue);
    if (event.target.closest(".name") && this.children.has(row.name)) this.opened.set(row.name, !this.isOpen(row));
    this.go(row.name);
  }

  go(name) {
    this.current = name;
    this.draw();
    const line = [...this.body.children].find((child) => child.dataset.queue === name);
    if (line) line.focus();
  }

  key(event) {
    const row = this.byName.get(event.target.closest("tr")?.dataset.queue);
    if (!row || event.ctrlKey || event.metaKey || event.altKey) return;
    const rows = this.visible().slice(0, this.shown);
    const at = rows.findIndex((item) => item.name === row.name);
    const nested = this.children.has(row.name);
    let next = null;
    if (event.key === "ArrowDown") next = rows[at + 1];
    else if (event.key === "ArrowUp") next = rows[at - 1];
    else if (event.key === "Home") next = rows[0];
    else if (event.key === "End") next = rows[rows.length - 1];
    else if (event.key === "ArrowRight") {
      if (nested && !this.isOpen(row)) { this.opened.set(row.name, true); next = row; }
      else if (nested) next = rows[at + 1];
    } else if (event.key === "ArrowLeft") {
      if (nested && this.isOpen(row) && !this.search) { this.opened.set(row.name, false); next = row; }
      else if (row.depth) next = this.byName.get(row.parent);
    } else if (event.key === "Enter") { location.hash = jobsOf(row.name); event.preventDefault(); return; }
    else return;
    event.preventDefault();
    if (next) this.go(next.name);
  }
}

function jobsOf(queue, state = "") {
  const query = new URLSearchParams({ queue, ...(state ? { state } : {}) });
  return `#jobs?${query}`;
}

function gangs(row, leaf) {
  const parts = [];
  const linked = (state) => (leaf ? { href: jobsOf(row.name, state), tabindex: -1 } : {}); // only leaves hold jobs of their own
  const tag = leaf ? "a" : "span";
  if (row.running) parts.push(el(tag, { ...linked(""), text: `${row.running} running` }));
  if (row.waiting) parts.push(el(tag, { ...linked("waiting"), class: "waits", text: `${row.waiting} waiting` }));
  return parts.length ? parts.flatMap((part, index) => (index ? [el("br"), part] : [part])) : el("span", { class: "muted", text: "–" });
}

/** What the bar shows, in words. */
export function inWords(use) {
  const parts = [`${use.resource}: ${use.used} in use`];
  if (use.deserved) parts.push(`${use.deserved} deserved`);
  if (use.guarantee) parts.push(`${use.guarantee} guaranteed`);
  parts.push(use.limited ? `at most ${use.capability}` : use.of ? `no limit of its own, the cluster has ${use.of}` : "no limit of its own");
  return parts.join(", ");
}

/** Use against capability, with marks for what is deserved and guaranteed. */
export function bar(use) {
  const within = use.deserved_part === null ? use.used_part : Math.min(use.used_part, use.deserved_part);
  const beyond = use.used_part - within;
  const drawing = el("div", { class: use.limited ? "bar" : "bar unlimited", role: "img", "aria-label": inWords(use), title: inWords(use) },
    el("span", { class: "fill", vars: { "--to": within } }),
    beyond > 0 ? el("span", { class: "beyond", vars: { "--from": within, "--to": beyond } }) : null,
    use.guarantee_part ? el("span", { class: "guarantee", vars: { "--to": use.guarantee_part } }) : null,
    use.deserved_part === null ? null : el("span", { class: "deserved", vars: { "--at": use.deserved_part } }));
  const facts = [use.deserved ? `deserves ${use.deserved}` : "", use.guarantee ? `guaranteed ${use.guarantee}` : ""].filter(Boolean).join(" · ") || (use.limited ? "" : "no limit of its own");
  return el("div", { class: "measure" }, drawing,
    el("div", { class: "figures", "aria-hidden": "true" },
      el("span", { class: "used" }, el("b", { text: use.used }), use.limited ? ` of ${use.capability}` : ""),
      el("span", { class: "muted", text: facts })));
}

function legend() {
  const item = (kind, text) => el("li", {}, el("span", { class: `key ${kind}`, "aria-hidden": "true" }), text);
  return el("ul", { class: "legend", "aria-label": "Legend of the bars" },
    item("k-fill", "in use"), item("k-beyond", "in use beyond deserved"), item("k-deserved", "deserved"),
    item("k-guarantee", "guaranteed"), item("k-limit", "ends at the capability"), item("k-open", "no capability: ends at what the cluster has"));
}
