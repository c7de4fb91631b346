// The list of terminals, grouped by machine: running ones first, the newest on top, exited ones folded. The host sends the whole list, then
// changes. Tab stops once in the list; arrow keys move within it.
import {clean, place, when} from "./text.js";

export const states = {
  running: t => t.awaits ? [t.awaits.replace("_", " "), "awaits"] : t.ready === "failed" ? ["not ready", "bad"] : t.ready ? [t.ready, t.ready === "ready" ? "running" : "starting"] : ["running", "running"],
  away: t => [t.until ? "away since " + when(t.away) : t.awayWhy || "machine offline", "away"],
  exited: t => t.exitCode == null ? ["ended", "bad"] : t.exitCode === 0 ? ["exited 0", "exited"] : ["exited " + t.exitCode, "bad"],
};

export class List extends EventTarget {
  constructor(nav, filter) {
    super();
    this.nav = nav;
    this.filter = filter;
    this.rows = new Map(); // id -> the host's entry
    this.items = new Map(); // id -> element
    this.groups = new Map(); // machine -> {section, live, fold, head, ended}
    this.mine = this.part("My machines");
    this.shared = this.part("Shared with me");
    filter.addEventListener("input", () => this.draw());
    filter.addEventListener("keydown", e => { if (e.key === "ArrowDown" || e.key === "Enter") { e.preventDefault(); this.shown()[0]?.focus(); } });
    nav.addEventListener("keydown", e => this.move(e));
    nav.addEventListener("focusin", e => this.stop(e.target));
    this.listen();
  }

  // part makes one of the two parts of the list. Its heading is shown if the host sends owners.
  part(title) {
    const box = this.nav.appendChild(document.createElement("div"));
    box.append(Object.assign(document.createElement("h2"), {textContent: title, hidden: true}));
    return box;
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

  // newest returns the running terminals, at most n, the newest first.
  newest(n) { return [...this.rows.values()].filter(t => t.state === "running").sort(order).slice(0, n); }

  choose(id) {
    this.items.get(this.chosen)?.setAttribute("aria-current", "false");
    this.chosen = id;
    const item = this.items.get(id);
    item?.setAttribute("aria-current", "true");
    const fold = item?.closest("details");
    if (fold) fold.open = true;
    this.stop(item);
  }

  // shown returns the visible rows, and the summaries that unfold exited terminals.
  shown() {
    return [...this.nav.querySelectorAll("a:not([hidden]), summary")].filter(e =>
      !e.closest("[hidden]") && (e.tagName === "SUMMARY" || (e.closest("details")?.open ?? true)));
  }

  // stop makes Tab stop at an element of the list. Without one, Tab stops where it did or, if that is not visible, at the first visible
  // element.
  stop(element) {
    const next = element && this.nav.contains(element) && element.matches("a, summary") ? element : this.tabbed;
    const here = next?.isConnected && !next.closest("[hidden]") && (next.tagName === "SUMMARY" || (next.closest("details")?.open ?? true));
    const use = here ? next : this.nav.querySelector("section:not([hidden]) a:not([hidden]), section:not([hidden]) summary");
    if (use === this.tabbed) return;
    if (this.tabbed) this.tabbed.tabIndex = -1;
    this.tabbed = use;
    if (use) use.tabIndex = 0;
  }

  move(e) {
    const step = {ArrowDown: 1, ArrowUp: -1, j: 1, k: -1}[e.key];
    if (!step || e.ctrlKey || e.metaKey || e.altKey) return;
    const all = this.shown(), i = all.indexOf(document.activeElement);
    e.preventDefault();
    e.stopPropagation();
    if (i + step < 0) this.filter.focus();
    else all[i + step]?.focus();
  }

  // take applies an update. It draws only what has changed.
  take(update) {
    if (update.whole) this.me = update.me;
    const touched = new Set();
    const gone = update.whole ? new Set(this.rows.keys()) : new Set(update.gone);
    for (const t of update.rows) gone.delete(t.id);
    for (const id of gone) {
      touched.add(this.rows.get(id)?.machine);
      this.items.get(id)?.remove();
      this.items.delete(id);
      this.rows.delete(id);
    }
    const words = this.words();
    update.rows.sort(order).reverse(); // oldest first, so that each row is inserted at the top
    for (const t of update.rows) {
      touched.add(this.rows.get(t.id)?.machine);
      touched.add(t.machine);
      this.rows.set(t.id, t);
      this.put(t, words);
    }
    touched.delete(undefined);
    this.tidy(touched);
  }

  // draw applies the filter to all rows.
  draw() {
    const words = this.words();
    for (const t of this.rows.values()) this.items.get(t.id).hidden = !matches(t, words);
    this.tidy(this.groups.keys());
  }

  words() { return this.filter.value.toLowerCase().split(/\s+/).filter(Boolean); }

  // put draws one row and moves it to its place.
  put(t, words) {
    let item = this.items.get(t.id);
    if (!item) this.items.set(t.id, item = make());
    fill(item, t);
    item.id = "row-" + t.id;
    item.setAttribute("aria-current", String(t.id === this.chosen));
    item.hidden = !matches(t, words);
    const group = this.group(t);
    this.insert(item, t, failed(t) ? group.failed : t.state === "exited" ? group.ended : group.live);
  }

  // insert puts a row in its place within a box.
  insert(item, t, box) {
    const before = (e, t) => order(this.rows.get(e.id.slice(4)), t) < 0;
    const {previousElementSibling: above, nextElementSibling: below} = item;
    if (item.parentElement === box && (!above || before(above, t)) && (!below || !before(below, t))) return;
    item.remove();
    let next = box.firstElementChild;
    while (next && before(next, t)) next = next.nextElementSibling;
    box.insertBefore(item, next);
  }

  // group returns the section for a terminal's machine. It makes the section if there is none; sections are sorted by name.
  group({machine, owner}) {
    let group = this.groups.get(machine);
    if (group) return group;
    const section = document.createElement("section");
    const head3 = section.appendChild(Object.assign(document.createElement("h3"), {textContent: clean(machine)}));
    const shared = this.me !== undefined && (owner ?? "") !== this.me, part = shared ? this.shared : this.mine;
    if (shared && owner) head3.append(Object.assign(document.createElement("span"), {textContent: "of " + clean(owner)}));
    const live = section.appendChild(document.createElement("div")), failed = section.appendChild(document.createElement("div")), fold = section.appendChild(document.createElement("details"));
    const head = fold.appendChild(Object.assign(document.createElement("summary"), {tabIndex: -1}));
    fold.addEventListener("toggle", () => this.stop());
    group = {section, live, failed, fold, head, part, ended: fold.appendChild(document.createElement("div"))};
    const after = [...this.groups.entries()].filter(([name, g]) => g.part === part && name > machine).map(([name]) => name).sort()[0];
    part.insertBefore(section, this.groups.get(after)?.section ?? null);
    this.groups.set(machine, group);
    return group;
  }

  // tidy hides the groups of machines without a visible row, and removes empty ones. While a filter is set, it unfolds exited terminals
  // that match.
  tidy(machines) {
    const filtered = this.words().length > 0;
    for (const machine of machines) {
      const g = this.groups.get(machine);
      if (!g) continue;
      for (const old of [...g.failed.children].slice(unfolded)) this.insert(old, this.rows.get(old.id.slice(4)), g.ended);
      const seen = box => [...box.querySelectorAll("a:not([hidden])")], folded = seen(g.ended).length;
      const bad = [...seen(g.failed), ...seen(g.ended)].filter(e => failed(this.rows.get(e.id.slice(4)))).length, ended = folded + seen(g.failed).length;
      g.fold.hidden = folded === 0;
      set(g.head, [ended > bad && ended - bad + " exited", bad && bad + " failed"].filter(Boolean).join(", "));
      if (filtered && !g.unfolded) { g.unfolded = true; g.was = g.fold.open; g.fold.open = true; }
      else if (!filtered && g.unfolded) { g.unfolded = false; g.fold.open = g.was; }
      g.section.hidden = ended === 0 && !g.live.querySelector("a:not([hidden])");
      if (!g.section.querySelector("a")) {
        g.section.remove();
        this.groups.delete(machine);
      }
    }
    for (const part of [this.mine, this.shared]) part.firstChild.hidden = this.me === undefined || !part.querySelector("section:not([hidden])");
    if (!this.none) this.nav.append(this.none = Object.assign(document.createElement("p"), {className: "none"}));
    this.none.hidden = this.nav.querySelector("a:not([hidden])") !== null;
    this.none.textContent = this.size ? "No terminal matches." : "No terminals are shared now.";
    this.stop();
  }
}

// order sorts newer terminals before older ones. It does not depend on when a machine was last connected.
function order(a, b) { return b.created - a.created || (a.name < b.name ? -1 : a.name > b.name ? 1 : a.id < b.id ? -1 : a.id > b.id ? 1 : 0); }

// failed reports whether a program has ended with an error. The newest of them are shown without unfolding.
const failed = t => t.state === "exited" && Boolean(t.exitCode);
const unfolded = 5;

// address returns a URL without what says nothing.
export const address = url => clean(url).replace(/\/$/, "");

function matches(t, words) {
  const text = [t.machine, t.name, t.title, t.cwd, t.running, t.url, t.label, t.checkout?.repository].filter(Boolean).join(" ").toLowerCase();
  return words.every(w => text.includes(w));
}

function make() {
  const a = document.createElement("a");
  a.tabIndex = -1;
  const top = a.appendChild(document.createElement("span"));
  top.className = "top";
  top.append(Object.assign(document.createElement("span"), {className: "name"}), Object.assign(document.createElement("span"), {className: "state"}));
  for (const kind of ["sub", "sub at", "sub"]) a.append(Object.assign(document.createElement("span"), {className: kind}));
  return a;
}

function fill(a, t) {
  a.href = "#" + t.id;
  const [name, state] = a.firstChild.children, [text, kind] = states[t.state](t);
  set(name, clean(t.name) + (t.label ? " · " + clean(t.label) : "") + (t.adopted ? " · " + clean(t.adopted) : ""));
  set(state, text);
  state.dataset.state = kind;
  set(a.children[1], t.running ? "$ " + clean(t.running) : clean(t.title));
  a.children[1].hidden = !a.children[1].textContent || a.children[1].textContent === name.textContent;
  set(a.children[2], address(t.url));
  a.children[2].hidden = !t.url;
  set(a.children[3], place(t.cwd));
  a.children[3].hidden = !t.cwd;
  a.title = [clean(t.machine) + "/" + clean(t.name), place(t.cwd), t.until ? "kept until " + when(t.until) : "", t.watching + " watching"].filter(Boolean).join("\n");
}

function set(e, text) { if (e.textContent !== text) e.textContent = text; }
