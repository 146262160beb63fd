// Tables with a search box, filters and pages: jobs, PodGroups, events.

import { age, chip, counted, el, empty, keyed, reason, say } from "./dom.js";

const SIZE = 50;

/** A table over one paged resource. What is filtered is kept in the address, so that it can be linked and reloaded. */
export class PagedTable {
  constructor(kind, { params, navigate }) {
    this.kind = kind;
    this.params = params;
    this.navigate = navigate;
    this.body = el("tbody");
    this.table = el("table", { class: kind.name, "aria-label": kind.label },
      el("thead", {}, el("tr", {}, kind.columns.map((title) => el("th", { scope: "col", text: title })))), this.body);
    this.none = el("div");
    this.count = el("span", { class: "muted", role: "status" });
    this.selects = {};
    this.back = el("button", { type: "button", text: "Previous", on: { click: () => this.turn(-1) } });
    this.on = el("button", { type: "button", text: "Next", on: { click: () => this.turn(1) } });
    this.root = el("div", {}, this.toolbar(), el("div", { class: "scroll" }, this.table), this.none,
      el("div", { class: "pager" }, this.back, this.on));
  }

  get offset() {
    return Number(this.params.get("offset") || 0);
  }

  url() {
    const query = new URLSearchParams(this.params);
    query.set("limit", SIZE);
    return `api/${this.kind.resource}?${query}`;
  }

  toolbar() {
    const box = el("input", { type: "search", placeholder: `Find in ${this.kind.label}`, "aria-label": `Find in ${this.kind.label}`, id: `${this.kind.name}-search` });
    box.value = this.params.get("search") || "";
    let timer = 0;
    box.addEventListener("input", () => { clearTimeout(timer); timer = setTimeout(() => this.set("search", box.value), 200); });
    const filters = this.kind.filters.map(([name, plural]) => {
      const select = el("select", { "aria-label": `Only of one ${name}`, "data-filter": name });
      select.addEventListener("change", () => this.set(name, select.value));
      this.selects[name] = [select, plural];
      return select;
    });
    return el("div", { class: "tools" }, box, ...filters, this.count);
  }

  set(name, value) {
    if (value) this.params.set(name, value);
    else this.params.delete(name);
    this.params.delete("offset");
    this.navigate(this.params);
  }

  turn(direction) {
    this.params.set("offset", Math.max(0, this.offset + direction * SIZE));
    this.navigate(this.params);
  }

  update({ page }) {
    for (const [name, [select, plural]] of Object.entries(this.selects)) this.choices(select, name, plural, page[plural]);
    keyed(this.body, page.rows, this.kind.key, this.kind.row);
    const first = page.matching ? page.offset + 1 : 0;
    const last = page.offset + page.rows.length;
    const range = page.matching > page.rows.length ? `${first.toLocaleString("en")}–${last.toLocaleString("en")} of ` : "";
    const filtered = page.matching === page.total ? "" : ` of ${page.total.toLocaleString("en")}`;
    say(this.count, `${range}${counted(page.matching, this.kind.thing)}${filtered}`);
    this.back.disabled = page.offset === 0;
    this.on.disabled = last >= page.matching;
    this.back.parentElement.hidden = page.matching <= SIZE;
    this.table.hidden = page.rows.length === 0;
    if (page.rows.length) this.none.replaceChildren();
    else if (!this.none.firstChild || this.none.dataset.of !== String(page.total)) {
      this.none.dataset.of = page.total;
      this.none.replaceChildren(page.total ? empty("Nothing matches these filters.") : this.kind.empty());
    }
  }

  choices(select, name, plural, values) {
    const chosen = this.params.get(name) || "";
    const extra = this.kind.extra?.[name] || [];
    const options = [["", `All ${plural}`], ...extra, ...values.map((value) => [value, value])];
    if (chosen && !options.some(([value]) => value === chosen)) options.push([chosen, chosen]);
    const signature = JSON.stringify(options);
    if (select.signature !== signature) {
      select.signature = signature;
      select.replaceChildren(...options.map(([value, text]) => el("option", { value, text })));
    }
    if (select.value !== chosen) select.value = chosen;
  }
}

const name = (row) => el("th", { scope: "row", class: "object" }, el("span", { class: "muted", text: `${row.namespace}/` }), el("span", { class: "title", text: row.name }));

/** Pods of a gang: a bar of five parts would say less than the numbers. */
function pods(row, total) {
  const parts = [];
  if (row.running) parts.push(`${row.running} running`);
  if (row.succeeded) parts.push(`${row.succeeded} succeeded`);
  if (row.failed) parts.push(`${row.failed} failed`);
  const needs = total ? `${total} in all, ${row.least} at least` : `${row.least} at least`;
  return el("td", { class: "pods" }, el("div", { text: parts.join(", ") || "none running" }), el("div", { class: "muted small", text: needs }));
}

export const EMPTY_JOBS = () => empty("No jobs yet. Try one:", "kubectl apply -f examples/demo/10-gang.yaml");

export const JOBS = {
  name: "jobs", resource: "jobs", label: "Jobs", thing: "job",
  columns: ["Job", "Queue", "State", "Pods", "Age", "Why it waits"],
  filters: [["namespace", "namespaces"], ["queue", "queues"], ["state", "states"]],
  extra: { state: [["waiting", "Waiting, with a reason"]] },
  key: (row) => `${row.namespace}/${row.name}`,
  row: (row) => el("tr", {}, name(row), el("td", { class: "queue" }, el("a", { href: `#queues?${new URLSearchParams({ search: row.queue })}`, text: row.queue })),
    el("td", {}, chip(row.state), row.group === "Inqueue" && row.state === "Pending" ? el("div", { class: "muted small", text: "admitted" }) : null),
    pods(row, row.pods), el("td", {}, age(row.created)), el("td", { class: "reason" }, reason(row.why))),
  empty: EMPTY_JOBS,
};

export const PODGROUPS = {
  name: "podgroups", resource: "podgroups", label: "PodGroups", thing: "PodGroup",
  columns: ["PodGroup", "Job", "Queue", "Phase", "Pods", "Topology", "Age", "Why it waits"],
  filters: [["namespace", "namespaces"], ["queue", "queues"], ["state", "states"]],
  extra: { state: [["waiting", "Waiting, with a reason"]] },
  key: (row) => `${row.namespace}/${row.name}`,
  row: (row) => el("tr", {}, name(row), el("td", { class: "job", text: row.job || "–" }), el("td", { class: "queue", text: row.queue }), el("td", {}, chip(row.state)),
    pods(row, 0), el("td", { text: row.tier || "–" }), el("td", {}, age(row.created)), el("td", { class: "reason" }, reason(row.why))),
  empty: () => empty("No PodGroups yet. Every job gets one, and so does every pod with schedulerName volcano."),
};

export const EVENTS = {
  name: "events", resource: "events", label: "Events", thing: "event",
  columns: ["Last", "Type", "Reason", "Object", "Message", "Times"],
  filters: [["namespace", "namespaces"], ["state", "states"]],
  key: (row) => [row.namespace, row.object, row.reason, row.message, row.source, row.state].join("\n"),
  row: (row) => el("tr", {}, el("td", {}, age(row.last)), el("td", {}, chip(row.state)), el("td", { text: row.reason }),
    el("td", { class: "object" }, el("span", { class: "muted", text: row.namespace ? `${row.namespace}/` : "" }), el("span", { class: "title", text: row.object })),
    el("td", { class: "reason" }, el("span", { class: "message", text: row.message })), el("td", { class: "number", text: row.count })),
  empty: () => empty("No events yet."),
};
