// The map: domains within domains, a cell for each node, filled as far as the node is.

import { counted, el, empty, percent } from "./dom.js";

const STEPS = 5;

export class Topology {
  constructor({ search = "", onSearch }) {
    this.search = search;
    this.focus = "";
    this.map = el("div", { class: "map", on: {
      mouseover: (event) => this.look(event.target), focusin: (event) => this.look(event.target), keydown: (event) => this.key(event) } });
    this.inspector = el("aside", { class: "inspector", "aria-live": "polite", "aria-label": "What is looked at" });
    this.box = el("input", { type: "search", placeholder: "Find a node, domain or job", "aria-label": "Find a node, domain or job", id: "topology-search" });
    this.box.value = search;
    this.box.addEventListener("input", () => { this.search = this.box.value; onSearch(this.search); this.mark(); });
    this.count = el("span", { class: "muted", role: "status" });
    this.root = el("div", {}, el("div", { class: "tools" }, this.box, this.count), legend(),
      el("div", { class: "topology" }, this.map, this.inspector));
  }

  update({ topology }) {
    const signature = JSON.stringify(topology);
    if (signature === this.signature) return;
    this.signature = signature;
    this.data = topology;
    const focused = document.activeElement?.dataset?.node ?? null;
    this.map.replaceChildren(...this.draw());
    this.mark();
    if (focused !== null && this.map.querySelector) this.cell(focused)?.focus({ preventScroll: true });
    this.inspect(this.looked);
  }

  draw() {
    const { domains, nodes, outside } = this.data;
    if (!nodes.length) return [empty("No nodes.")];
    const made = [];
    const open = []; // the element that takes the children of each depth
    for (const [index, domain] of domains.entries()) {
      const inner = el("div", { class: "inner" });
      const cells = domain.nodes.length ? el("div", { class: "cells", vars: { "--columns": columns(domain.nodes.length) } }, domain.nodes.map((place) => this.drawCell(place))) : null;
      const facts = `${counted(domain.size, "node")} · ${percent(domain.use)}`;
      const title = domain.nodes.length && domain.depth ? facts : `tier ${domain.tier}${domain.tier_name ? `, ${domain.tier_name}` : ""} · ${facts}`;
      const box = el("section", { class: domain.nodes.length ? "domain leaf" : "domain", "aria-label": words(domain), "data-domain": index },
        el("header", {}, el("span", { class: "title", text: domain.name }), el("span", { class: "muted small", text: title })),
        cells, inner);
      open.length = domain.depth;
      (domain.depth ? open[domain.depth - 1] : { append: (...items) => made.push(...items) }).append(box);
      open[domain.depth] = inner;
    }
    if (outside.length) {
      const title = domains.length ? "In no HyperNode" : "All nodes";
      made.push(el("section", { class: "domain leaf", "aria-label": title },
        el("header", {}, el("span", { class: "title", text: title }), el("span", { class: "muted small", text: counted(outside.length, "node") })),
        el("div", { class: "cells" }, outside.map((place) => this.drawCell(place)))));
    }
    if (!domains.length) made.push(empty("There are no HyperNodes: the scheduler sees one flat cluster. With HyperNode objects, written by hand or found by discovery, the map shows their tiers.", "kubectl get hypernodes"));
    const [first] = made.map((item) => item.querySelector?.(".cell")).filter(Boolean);
    if (first) first.tabIndex = 0;
    return made;
  }

  drawCell(place) {
    const node = this.data.nodes[place];
    const step = node.use ? Math.min(STEPS - 1, Math.floor(node.use * STEPS)) : 0;
    const state = node.ready ? (node.schedulable ? "" : " cordoned") : " down";
    return el("button", { type: "button", class: `cell u${step}${state}`, tabindex: -1, "data-node": place, vars: { "--use": node.use },
      "aria-label": `${node.name}: ${percent(node.use)} used, ${counted(node.pods, "pod")}${stateWords(node)}` });
  }

  cell(place) {
    return this.map.querySelector(`.cell[data-node="${place}"]`);
  }

  look(target) {
    const cell = target.closest?.(".cell");
    const domain = target.closest?.(".domain > header")?.parentElement;
    if (cell) this.inspect({ node: this.data.nodes[cell.dataset.node].name });
    else if (domain?.dataset.domain) this.inspect({ domain: this.data.domains[domain.dataset.domain].name });
  }

  inspect(looked) {
    this.looked = looked;
    const node = looked?.node && this.data.nodes.find((item) => item.name === looked.node);
    const domain = looked?.domain && this.data.domains.find((item) => item.name === looked.domain);
    if (node) this.inspector.replaceChildren(...this.aboutNode(node));
    else if (domain) this.inspector.replaceChildren(...this.aboutDomain(domain));
    else this.inspector.replaceChildren(el("p", { class: "muted", text: "Point at a node or a domain, or walk with the arrow keys." }));
  }

  aboutNode(node) {
    return [el("h3", { text: node.name }), el("p", { text: `${percent(node.use)} of its scarcest resource${stateWords(node)}` }),
      el("ul", {}, node.amounts.split(", ").map((text) => el("li", { text }))), ...this.jobs(node.jobs, node.pods)];
  }

  aboutDomain(domain) {
    const start = this.data.domains.indexOf(domain);
    const jobs = new Map();
    let pods = 0;
    for (let at = start; at < this.data.domains.length && (at === start || this.data.domains[at].depth > domain.depth); at += 1) {
      for (const place of this.data.domains[at].nodes) {
        pods += this.data.nodes[place].pods;
        for (const [job, count] of this.data.nodes[place].jobs) jobs.set(job, (jobs.get(job) || 0) + count);
      }
    }
    return [el("h3", { text: domain.name }), el("p", { text: words(domain) }), ...this.jobs([...jobs], pods)];
  }

  jobs(jobs, pods) {
    const most = 15;
    const sorted = [...jobs].sort((one, other) => other[1] - one[1]);
    const items = sorted.slice(0, most).map(([job, count]) => el("li", {},
      el("a", { href: `#topology?${new URLSearchParams({ search: this.data.jobs[job] })}`, text: this.data.jobs[job] }), ` ${counted(count, "pod")}`));
    if (sorted.length > most) items.push(el("li", { class: "muted", text: `and ${counted(sorted.length - most, "job")} more` }));
    return [el("h4", { text: `${counted(jobs.length, "job")}, ${counted(pods, "pod")}` }), el("ul", {}, items)];
  }

  /** Point out what is searched for, in brightness and with a frame. */
  mark() {
    if (!this.data) return;
    const text = this.search.trim().toLowerCase();
    const jobs = new Set(this.data.jobs.flatMap((job, index) => (text && job.toLowerCase().includes(text) ? [index] : [])));
    let hits = 0;
    for (const cell of this.map.querySelectorAll(".cell")) {
      const node = this.data.nodes[cell.dataset.node];
      const around = cell.closest("[data-domain]");
      const hit = text && (node.name.toLowerCase().includes(text) || node.jobs.some(([job]) => jobs.has(job))
        || (around && this.data.domains[around.dataset.domain].name.toLowerCase().includes(text)));
      cell.classList.toggle("hit", Boolean(hit));
      hits += hit ? 1 : 0;
    }
    this.map.classList.toggle("searched", Boolean(text));
    this.count.textContent = text ? `${counted(hits, "node")} of ${this.data.nodes.length}` : [counted(this.data.nodes.length, "node"), ...tiers(this.data.domains)].join(", ");
  }

  key(event) {
    const cell = event.target.closest(".cell");
    if (!cell || event.ctrlKey || event.metaKey || event.altKey) return;
    const cells = [...this.map.querySelectorAll(".cell")];
    const at = cells.indexOf(cell);
    const home = (one) => one.closest(".cells");
    let next = null;
    if (event.key === "ArrowRight") next = cells[at + 1];
    else if (event.key === "ArrowLeft") next = cells[at - 1];
    else if (event.key === "ArrowDown") next = cells.slice(at).find((one) => home(one) !== home(cell));
    else if (event.key === "ArrowUp") next = cells.slice(0, at).reverse().find((one) => home(one) !== home(cell));
    else if (event.key === "Home") [next] = cells;
    else if (event.key === "End") next = cells[cells.length - 1];
    else return;
    event.preventDefault();
    if (!next) return;
    cell.tabIndex = -1;
    next.tabIndex = 0;
    next.focus();
  }
}

function stateWords(node) {
  return (node.ready ? "" : ", not ready") + (node.schedulable ? "" : ", cordoned");
}

/** Cells a line: about twice as many as there are lines. */
function columns(nodes) {
  return Math.min(16, Math.max(4, Math.ceil(Math.sqrt(2 * nodes))));
}

/** How many domains there are of each tier, the narrowest first. */
function tiers(domains) {
  const found = new Map();
  for (const domain of domains) {
    const key = `tier ${domain.tier}${domain.tier_name ? ` (${domain.tier_name})` : ""}`;
    found.set(key, [domain.tier, (found.get(key)?.[1] || 0) + 1]);
  }
  return [...found].sort((one, other) => one[1][0] - other[1][0]).map(([key, [, count]]) => `${count} of ${key}`);
}

function words(domain) {
  return `${domain.name}, tier ${domain.tier}${domain.tier_name ? ` (${domain.tier_name})` : ""}: ${counted(domain.size, "node")}, ${percent(domain.use)} used`;
}

function legend() {
  const cells = [0, 0.3, 0.5, 0.7, 1].map((use, step) => el("span", { class: `cell u${step}`, vars: { "--use": use }, "aria-hidden": "true" }));
  return el("ul", { class: "legend", "aria-label": "Legend of the map" },
    el("li", {}, "empty ", ...cells, " full"), el("li", {}, el("span", { class: "cell down", "aria-hidden": "true" }), "not ready"),
    el("li", {}, el("span", { class: "cell cordoned", "aria-hidden": "true" }), "cordoned"),
    el("li", { class: "muted", text: "filled to what pods ask for of the scarcest resource" }));
}
