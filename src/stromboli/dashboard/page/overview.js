// The first page: how much there is, how fast it starts, what waits longest, what was said last.

import { age, chip, counted, el, keyed, percent, reason, say } from "./dom.js";
import { QueueTree } from "./queues.js";
import { EMPTY_JOBS } from "./tables.js";

const FIRST_QUEUES = 15;

export class Overview {
  constructor() {
    this.tiles = el("section", { class: "tiles", "aria-label": "Summary" });
    this.states = el("ul", { class: "states" });
    this.rooms = el("div", { class: "rooms" });
    this.chart = el("div", { class: "chart" });
    this.tree = new QueueTree({ few: FIRST_QUEUES });
    this.waiting = el("ol", { class: "list" });
    this.events = el("ol", { class: "list" });
    this.root = el("div", {}, this.tiles,
      el("div", { class: "three" },
        panel("Jobs by state", this.states), panel("Asked for by pods", this.rooms), panel("Pods bound a second", this.chart)),
      panel("Queues", this.tree.root, "#queues", "All queues"),
      el("div", { class: "two" },
        panel("Waiting longest", this.waiting, "#jobs?state=waiting", "All that wait"),
        panel("Latest events", this.events, "#events", "All events")));
  }

  update({ overview, pace, queues }) {
    const view = overview;
    const jobs = Object.values(view.jobs).reduce((sum, count) => sum + count, 0);
    const tiles = [
      ["Jobs waiting", view.waiting, "#jobs?state=waiting", view.waiting ? "with a reason each" : "nothing waits"],
      ["Jobs running", view.jobs.Running || 0, "#jobs?state=Running", `of ${counted(jobs, "job")}`],
      ["Pods placed", view.placed, "#podgroups", view.unplaced ? `${counted(view.unplaced, "pod")} without a node` : "none without a node"],
      ["Nodes ready", view.ready, "#topology", `of ${counted(view.nodes, "node")}`],
      ["Bound in a minute", pace.minute, "#events", `${pace.now} a second now`],
    ];
    keyed(this.tiles, tiles, (tile) => tile[0], ([title, number, href, note]) =>
      el("a", { class: "tile", href }, el("span", { class: "label", text: title }),
        el("span", { class: "figure", text: number.toLocaleString("en") }), el("span", { class: "muted small", text: note })));
    this.showStates(view.jobs, jobs);
    keyed(this.rooms, view.rooms, (room) => room.resource, room);
    this.showPace(pace);
    this.tree.update(queues);
    this.list(this.waiting, view.longest, (row) => `${row.namespace}/${row.name}`, waitingItem,
      () => (jobs ? el("li", { class: "muted", text: "Nothing waits." }) : el("li", {}, EMPTY_JOBS())));
    this.list(this.events, view.latest, (row) => [row.namespace, row.object, row.reason, row.message].join("\n"), eventItem,
      () => el("li", { class: "muted", text: "No events yet." }));
  }

  list(parent, rows, key, item, none) {
    if (rows.length) keyed(parent, rows, key, item);
    else keyed(parent, ["none"], () => "none", none, () => String(none()?.textContent));
  }

  showStates(jobs, total) {
    const states = Object.entries(jobs);
    if (!states.length) keyed(this.states, ["none"], () => " none", () => el("li", { class: "muted", text: "No jobs yet." }));
    else keyed(this.states, states.map(([state, count]) => ({ state, count, part: count / total })), (item) => item.state, stateItem);
  }

  showPace(pace) {
    const signature = JSON.stringify(pace.columns);
    if (this.chart.signature === signature) return;
    this.chart.signature = signature;
    const highest = Math.max(...pace.columns, 1);
    const width = 3, height = 56;
    const columns = pace.columns.map((rate, index) => {
      const tall = Math.round((rate / highest) * height);
      return el("rect", { x: index * (width + 1), y: height - tall, width, height: tall });
    });
    const words = `Binds a second over the last five minutes: ${pace.now} now, ${pace.peak} in the busiest second`;
    this.chart.replaceChildren(
      el("svg", { viewBox: `0 0 ${pace.columns.length * (width + 1)} ${height + 1}`, preserveAspectRatio: "none", role: "img", "aria-label": words },
        el("line", { x1: 0, y1: height + 0.5, x2: pace.columns.length * (width + 1), y2: height + 0.5, class: "axis" }), ...columns),
      el("div", { class: "figures muted" }, el("span", { text: "5 minutes ago" }), el("span", { text: `busiest second: ${pace.peak}` }), el("span", { text: "now" })));
  }
}

function panel(title, content, href, link) {
  return el("section", { class: "panel", "aria-label": title },
    el("div", { class: "heading" }, el("h2", { text: title }), href ? el("a", { href, text: link }) : null), content);
}

function stateItem({ state, count, part }) {
  return el("li", {}, el("a", { href: `#jobs?${new URLSearchParams({ state })}` }, chip(state)),
    el("span", { class: "meter", vars: { "--to": part } }), el("span", { class: "number", text: count.toLocaleString("en") }));
}

function room(item) {
  const words = `${item.resource}: ${item.used} of ${item.of || "nothing"}, ${percent(item.part)}`;
  return el("div", { class: "room" }, el("div", { class: "figures" }, el("span", { text: item.resource }), el("span", { text: `${item.used} of ${item.of || "0"}` })),
    el("div", { class: "bar", role: "img", "aria-label": words, title: words }, el("span", { class: "fill", vars: { "--to": item.part } })));
}

function waitingItem(row) {
  return el("li", {}, el("div", { class: "line" }, el("span", { class: "object" }, el("span", { class: "muted", text: `${row.namespace}/` }), el("span", { class: "title", text: row.name })),
    el("span", { class: "muted" }, `${row.queue} · `, age(row.created))), reason(row.why));
}

function eventItem(row) {
  return el("li", {}, el("div", { class: "line" }, el("span", { class: "object" }, row.state === "Normal" ? null : chip(row.state), " ", el("strong", { text: row.reason }), " ",
    el("span", { class: "title", text: row.object })), el("span", { class: "muted" }, row.count > 1 ? `${row.count} times · ` : "", age(row.last))),
  el("div", { class: "message small", text: row.message }));
}
