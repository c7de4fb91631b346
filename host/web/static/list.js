// The list of terminals, grouped by machine. It is told by the host whenever something in it changes.
import {clean, place} from "./text.js";

export const states = {
  running: () => ["running", "running"],
  away: () => ["machine away", "away"],
  exited: t => t.exitCode == null ? ["ended", "bad"] : t.exitCode === 0 ? ["exited 0", "exited"] : ["exited " + t.exitCode, "bad"],
};

export class List extends EventTarget {
  constructor(nav, filter) {
    super();
    this.nav = nav;
    this.filter = filter;
    this.all = [];
    this.items = new Map(); // id -> element
    this.groups = new Map(); // machine -> element
    filter.addEventListener("input", () => this.draw());
    filter.addEventListener("keydown", e => { if (e.key === "ArrowDown" || e.key === "Enter") { e.preventDefault(); this.shown()[0]?.focus(); } });
    nav.addEventListener("keydown", e => this.move(e));
    this.listen();
  }

  listen() {
    this.source = new EventSource("/events");
    this.source.onmessage = e => {
      this.all = JSON.parse(e.data).terminals;
      this.draw();
      this.dispatchEvent(new Event("change"));
    };
    this.source.onerror = () => {
      if (this.source.readyState === EventSource.CLOSED) setTimeout(() => this.listen(), 3000);
    };
  }

  find(id) { return this.all.find(t => t.id === id); }

  choose(id) {
    this.chosen = id;
    for (const [key, e] of this.items) e.setAttribute("aria-current", String(key === id));
  }

  shown() { return [...this.nav.querySelectorAll("a:not([hidden])")]; }

  move(e) {
    const step = {ArrowDown: 1, ArrowUp: -1, j: 1, k: -1}[e.key];
    if (!step || e.ctrlKey || e.metaKey || e.altKey) return;
    const all = this.shown(), i = all.indexOf(document.activeElement);
    e.preventDefault();
    e.stopPropagation();
    if (i + step < 0) this.filter.focus();
    else all[i + step]?.focus();
  }

  draw() {
    const words = this.filter.value.toLowerCase().split(/\s+/).filter(Boolean);
    const there = new Set(), machines = new Map();
    for (const t of this.all) {
      there.add(t.id);
      let item = this.items.get(t.id);
      if (!item) this.items.set(t.id, item = make());
      fill(item, t);
      item.setAttribute("aria-current", String(t.id === this.chosen));
      const text = (t.machine + " " + t.name + " " + t.title + " " + (t.cwd ?? "") + " " + (t.running ?? "")).toLowerCase();
      item.hidden = !words.every(w => text.includes(w));
      machines.set(t.machine, [...(machines.get(t.machine) ?? []), item]);
    }
    for (const [id, item] of this.items) if (!there.has(id)) { item.remove(); this.items.delete(id); }
    for (const [name, group] of this.groups) if (!machines.has(name)) { group.remove(); this.groups.delete(name); }
    for (const name of [...machines.keys()].sort()) {
      let group = this.groups.get(name);
      if (!group) {
        this.groups.set(name, group = document.createElement("section"));
        group.append(document.createElement("h3"));
        this.nav.append(group);
      }
      const items = machines.get(name), seen = items.filter(i => !i.hidden).length;
      group.hidden = seen === 0;
      group.firstChild.textContent = clean(name);
      items.forEach((item, i) => { if (group.children[i + 1] !== item) group.insertBefore(item, group.children[i + 1] ?? null); });
    }
    if (!this.none) this.nav.append(this.none = Object.assign(document.createElement("p"), {className: "none"}));
    this.none.hidden = this.shown().length > 0;
    this.none.textContent = this.all.length ? "No terminal matches." : "No machine lends a terminal now.";
  }
}

function make() {
  const a = document.createElement("a");
  const top = a.appendChild(document.createElement("span"));
  top.className = "top";
  top.append(Object.assign(document.createElement("span"), {className: "name"}), Object.assign(document.createElement("span"), {className: "state"}));
  a.append(Object.assign(document.createElement("span"), {className: "sub"}), Object.assign(document.createElement("span"), {className: "sub"}));
  return a;
}

function fill(a, t) {
  a.href = "#" + t.id;
  const [name, state] = a.firstChild.children, [text, kind] = states[t.state](t);
  set(name, clean(t.name));
  set(state, text);
  state.dataset.state = kind;
  set(a.children[1], t.running ? "$ " + clean(t.running) : clean(t.title));
  a.children[1].hidden = !a.children[1].textContent || a.children[1].textContent === name.textContent;
  set(a.children[2], place(t.cwd));
  a.children[2].hidden = !t.cwd;
  a.title = [clean(t.machine) + "/" + clean(t.name), place(t.cwd), t.watching + " watching"].filter(Boolean).join("\n");
}

function set(e, text) { if (e.textContent !== text) e.textContent = text; }
