// The list of terminals, grouped by machine. The host sends all of it, and then what changes.
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
    this.rows = new Map(); // id -> what the host says
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
      this.take(JSON.parse(e.data));
      this.dispatchEvent(new Event("change"));
    };
    this.source.onerror = () => {
      if (this.source.readyState === EventSource.CLOSED) setTimeout(() => this.listen(), 3000);
    };
  }

  get size() { return this.rows.size; }

  find(id) { return this.rows.get(id); }

  choose(id) {
    this.items.get(this.chosen)?.setAttribute("aria-current", "false");
    this.chosen = id;
    this.items.get(id)?.setAttribute("aria-current", "true");
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

  // take brings the list up to date; only what has changed is drawn.
  take(update) {
    const touched = new Set();
    const gone = update.whole ? new Set(this.rows.keys()) : new Set(update.gone);
    for (const t of update.rows) gone.delete(t.id);
    for (const id of gone) {
      touched.add(this.items.get(id)?.parentElement);
      this.items.get(id)?.remove();
      this.items.delete(id);
      this.rows.delete(id);
    }
    const words = this.words();
    for (const t of update.rows) {
      touched.add(this.items.get(t.id)?.parentElement);
      this.rows.set(t.id, t);
      touched.add(this.put(t, words));
    }
    touched.delete(undefined);
    this.tidy(touched);
  }

  // draw applies the filter to all.
  draw() {
    const words = this.words();
    for (const t of this.rows.values()) this.items.get(t.id).hidden = !matches(t, words);
    this.tidy(this.groups.values());
  }

  words() { return this.filter.value.toLowerCase().split(/\s+/).filter(Boolean); }

  // put draws one row and returns its group.
  put(t, words) {
    let item = this.items.get(t.id);
    if (!item) this.items.set(t.id, item = make());
    fill(item, t);
    item.setAttribute("aria-current", String(t.id === this.chosen));
    item.hidden = !matches(t, words);
    const group = this.group(t.machine);
    if (item.parentElement !== group) group.append(item);
    return group;
  }

  // group is the part of the list for a machine, among the others by its name.
  group(machine) {
    let group = this.groups.get(machine);
    if (!group) {
      group = document.createElement("section");
      group.append(Object.assign(document.createElement("h3"), {textContent: clean(machine)}));
      const after = [...this.groups.keys()].filter(name => name > machine).sort()[0];
      this.nav.insertBefore(group, this.groups.get(after) ?? this.none ?? null);
      this.groups.set(machine, group);
    }
    return group;
  }

  // tidy hides groups of which nothing is shown, and takes out those that are empty.
  tidy(groups) {
    for (const group of groups) {
      group.hidden = !group.querySelector("a:not([hidden])");
      if (group.children.length === 1) {
        group.remove();
        for (const [name, g] of this.groups) if (g === group) this.groups.delete(name);
      }
    }
    if (!this.none) this.nav.append(this.none = Object.assign(document.createElement("p"), {className: "none"}));
    this.none.hidden = this.nav.querySelector("a:not([hidden])") !== null;
    this.none.textContent = this.size ? "No terminal matches." : "No machine lends a terminal now.";
  }
}

function matches(t, words) {
  const text = (t.machine + " " + t.name + " " + t.title + " " + (t.cwd ?? "") + " " + (t.running ?? "")).toLowerCase();
  return words.every(w => text.includes(w));
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
