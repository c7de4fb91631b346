// What compilers, linters and tests report in a terminal. The host looks for problems only when it is asked, which the page does while this
// tab is shown.
import {bytes, clean} from "./text.js";

const every = 1000; // ms between two requests, while the terminal prints
const fewest = 3; // errors above the text

export class Problems {
  // brief is where the newest errors stand above the text, if anywhere.
  constructor(box, count, brief) {
    this.box = box;
    this.count = count;
    this.brief = brief;
    this.near = false; // the text is shown
    this.search = "";
  }

  // reset switches to another terminal.
  reset(id) {
    this.id = id;
    this.answer = null;
    this.failed = false;
    this.count.textContent = "";
    this.draw();
    this.changed();
  }

  // changed schedules another request to the host, if the tab is shown.
  changed() {
    this.stale = true;
    if (!this.wanted() || this.timer || this.asking) return;
    this.timer = setTimeout(() => { this.timer = 0; this.ask(); }, this.answer ? every : 0);
  }

  wanted() { return !this.box.hidden || this.near; }

  async ask() {
    const {id} = this;
    this.stale = false;
    this.asking = true;
    let answer = null;
    try {
      const r = await fetch("/terminals/" + id + "/problems");
      if (r.ok) answer = await r.json();
    } catch { /* the page says itself that the host is away */ }
    this.asking = false;
    if (this.id === id) {
      this.failed = !answer;
      this.answer = answer ?? this.answer;
      this.draw();
    }
    if (this.stale) this.changed();
  }

  // show draws what is shown of the problems. It is called when a tab is chosen.
  show(text) {
    this.near = text && Boolean(this.brief);
    this.draw();
    if (this.stale) this.changed();
  }

  draw() {
    const {answer: a} = this, say = text => Object.assign(document.createElement("p"), {textContent: text});
    if (a) this.count.textContent = a.errors + a.warnings || "";
    const errors = this.near && a ? a.problems.filter(p => p.severity === "error") : [];
    this.brief?.replaceChildren(...errors.slice(-fewest).map(p => this.row(p)), ...errors.length > fewest ? [say(a.errors - fewest + " more: Problems")] : []);
    if (this.box.hidden) return;
    if (!a) { this.box.replaceChildren(say(this.failed ? "The host did not answer the request for problems." : "Looking…")); return; }
    const all = a.problems.map(p => this.row(p)), notes = [];
    if (!all.length) notes.push("No problems found.");
    else notes.push(count(a.errors, "error") + ", " + count(a.warnings, "warning") + (a.more || a.dropped ? ". The first " + all.length + " are shown." : ""));
    if (a.unseenBytes) notes.push(bytes(a.unseenBytes) + " of output were gone before anybody looked at them.");
    this.box.replaceChildren(...notes.map(say), ...all);
    this.find(this.search);
  }

  row(p) {
    const row = document.createElement("div"), add = (kind, text) => row.append(Object.assign(document.createElement("span"), {className: kind, textContent: text}), " ");
    row.className = "problem";
    row.dataset.severity = p.severity;
    add("severity", p.severity);
    if (p.file) add("where", clean(p.file) + (p.line ? ":" + p.line + (p.column ? ":" + p.column : "") : ""));
    add("message", clean(p.message));
    add("tool", clean(p.tool) + (p.code ? " " + clean(p.code) : "") + (p.count > 1 ? " ×" + p.count : ""));
    return row;
  }

  // find hides the problems that do not match. It returns the number of those that match, -1 without a text.
  find(text) {
    this.search = text.toLowerCase();
    const all = [...this.box.querySelectorAll(".problem")];
    for (const row of all) row.hidden = !row.textContent.toLowerCase().includes(this.search);
    return this.search ? all.filter(row => !row.hidden).length : -1;
  }

  text() { return [...this.box.querySelectorAll(".problem")].map(row => row.textContent.trim() + "\n").join(""); }
}

const count = (n, what) => n + " " + what + (n === 1 ? "" : "s");
