// The earlier runs of a terminal, and whether it works: the verdict, as a mark beside its
// name. The terminal's machine knows them; the host only asks it, and keeps nothing.
import {bytes, clean, place, when} from "./text.js";

const every = 30000, soon = 1500; // ms between two requests, and from the end of a run to the request
const kinds = {good: "running", failing: "bad", running: "starting"}; // of colours

export class Runs {
  constructor(box, mark) {
    this.box = box;
    this.mark = mark;
    this.search = "";
    document.addEventListener?.("visibilitychange", () => this.changed());
  }

  // reset switches to another terminal; null is none.
  reset(t) {
    this.id = t?.target === "client" ? t.id : null;
    this.answer = null;
    this.failed = false;
    this.draw();
    this.plan(0);
  }

  // changed schedules a request to the host, because a run has ended.
  changed() { this.plan(soon); }

  plan(ms) {
    clearTimeout(this.timer);
    if (this.id && !document.hidden) this.timer = setTimeout(() => this.ask(), ms);
  }

  async ask() {
    const {id} = this;
    let answer = null;
    try {
      const r = await fetch("/terminals/" + id + "/runs");
      if (r.ok) answer = await r.json();
    } catch { /* the page says itself that the host is away */ }
    if (this.id !== id) return;
    this.failed = !answer;
    this.answer = answer ?? this.answer;
    this.draw();
    this.plan(every);
  }

  draw() {
    const v = this.answer?.verdict, known = v && v.verdict !== "unknown";
    this.mark.hidden = !known;
    this.mark.textContent = known ? (v.verdict === "good" ? "✓ good" : "✗ failing") : "";
    this.mark.dataset.state = known ? kinds[v.verdict] ?? "" : "";
    this.mark.title = known ? about(v).join("\n") : "";
    if (this.box.hidden) return;
    const say = text => Object.assign(document.createElement("p"), {textContent: text}), a = this.answer, notes = [];
    if (!this.id) notes.push("There are no earlier runs of this terminal.");
    else if (!a) notes.push(this.failed ? "The host did not answer the request for earlier runs." : "Looking…");
    else {
      if (known) notes.push(...about(v));
      if (a.why) notes.push(clean(a.why));
      else if (!a.runs.length) notes.push("No runs are kept that this host may know.");
      else if (a.more) notes.push("The newest " + a.runs.length + " are shown.");
    }
    const list = document.createElement("ol");
    list.append(...(a?.runs ?? []).map(r => this.row(r)));
    this.box.replaceChildren(...notes.map(say), list);
    this.find(this.search);
  }

  row(r) {
    const row = document.createElement("li"), add = (kind, text) => row.append(Object.assign(document.createElement("span"), {className: kind, textContent: text}), " ");
    row.className = "run";
    row.dataset.outcome = clean(r.outcome);
    const outcome = document.createElement("span");
    outcome.className = "state";
    outcome.dataset.state = kinds[r.outcome] ?? "";
    outcome.textContent = clean(r.outcome === "uncounted" ? "not counted" : r.outcome);
    row.append(outcome, " ");
    add("where", clean(r.command || r.name));
    const facts = [when(Date.parse(r.started)), clean(r.why), counts(r), r.checkout ? label(r.checkout) : "", place(r.cwd), bytes(r.bytes)].filter(Boolean);
    add("tool", facts.join(" · "));
    for (const line of r.first ?? []) row.append(Object.assign(document.createElement("span"), {className: "first", textContent: clean(line)}));
    return row;
  }

  // find hides the runs that do not match. It returns the number of those that match, -1
  // without a text.
  find(text) {
    this.search = text.toLowerCase();
    const all = [...this.box.querySelectorAll(".run")];
    for (const row of all) row.hidden = !row.textContent.toLowerCase().includes(this.search);
    return this.search ? all.filter(row => !row.hidden).length : -1;
  }

  text() { return [...this.box.querySelectorAll("p, .run")].map(row => row.textContent.trim() + "\n").join(""); }
}

// about returns a verdict in sentences.
function about(v) {
  const point = p => [p.commit && "at " + clean(p.commit), "in " + clean(p.run)].filter(Boolean).join(" ");
  const out = [clean(v.name || v.command) + ": " + clean(v.verdict) + (v.since ? " since " + when(Date.parse(v.since)) : "") + (v.newest?.why ? ", " + clean(v.newest.why) : "")];
  if (v.good && v.verdict === "failing") out.push("Last good " + point(v.good) + ".");
  if (v.failing) out.push("First failing " + point(v.failing) + (v.untried ? "; " + v.untried + " commits between them were not run" : "") + ".");
  return out.concat((v.notes ?? []).map(clean));
}

const counts = r => [r.errors && r.errors + (r.errors === 1 ? " error" : " errors"), r.warnings && r.warnings + (r.warnings === 1 ? " warning" : " warnings")].filter(Boolean).join(", ");
const label = c => clean([c.branch, (c.commit ?? "").slice(0, 7)].filter(Boolean).join("@")) + (c.changes === "yes" ? " with changes" : "");
