// The commands of a terminal, as blocks that fold. As in the protocol's reducer, output belongs to the last command until that is finished.
import {clean, draw, duration, lines, bytes} from "./text.js";

const maxCommands = 300, maxOutput = 256 << 10, maxLines = 2000; // commands; characters and lines of each command
const maxAll = 4 << 20; // characters of all commands together, so that a search is quick enough for each key typed
const redraw = 200; // ms

export class Blocks {
  constructor(box, count) {
    this.box = box;
    this.count = count;
    this.search = "";
    this.reset();
  }

  reset(supported) {
    this.all = [];
    this.total = 0;
    this.supported = supported;
    this.dirty = true;
    this.later();
  }

  load(content, supported) {
    this.reset(supported);
    for (const p of content ?? []) {
      if (p.type !== "command") continue;
      this.start(p.commandId, p.commandLine, p.timestamp, p._meta);
      this.data(p.output);
      if (p.isComplete) this.finish(p.commandId, p.exitCode, p.durationMs);
    }
  }

  start(id, line, at, meta) {
    this.supported = true;
    this.all.push({id, line: clean(line), at, unverified: !!meta?.["tether/unverified"], out: [], size: 0, cut: false, done: false, changed: true});
    if (this.all.length > maxCommands) {
      const first = this.all.shift();
      this.total -= first.size;
      first.block?.remove();
    }
    this.later();
  }

  data(text) {
    const c = this.all.at(-1);
    if (!c || c.done || !text) return;
    c.out.push(text);
    c.size += text.length;
    this.total += text.length;
    c.changed = true;
    while (c.size > maxOutput) {
      const first = c.out[0], over = c.size - maxOutput;
      if (first.length <= over) c.out.shift(); else c.out[0] = first.slice(over);
      c.size -= Math.min(first.length, over);
      this.total -= Math.min(first.length, over);
      c.cut = true;
    }
    for (let i = 0; this.total > maxAll && i < this.all.length - 1; i++) {
      const old = this.all[i];
      if (!old.size) continue;
      this.total -= old.size;
      Object.assign(old, {out: [], size: 0, cut: true, changed: true});
    }
    this.later();
  }

  finish(id, code, ms) {
    for (const c of this.all) if (c.id === id) { c.done = c.changed = true; c.code = code; c.ms = ms; }
    this.later();
  }

  // find marks the matches and hides commands without one. It returns the number of commands that match, -1 without a text.
  find(text) {
    this.search = text.toLowerCase();
    for (const c of this.all) c.changed = true;
    this.draw();
    return this.search ? this.all.filter(c => c.block && !c.block.hidden).length : -1;
  }

  // recolour draws all commands again, since colours depend on the theme.
  recolour() {
    for (const c of this.all) c.changed = true;
    this.draw();
  }

  fold() {
    const open = !this.all.some(c => c.block?.open);
    for (const c of this.all) if (c.block) c.block.open = open;
  }

  text() { return this.all.map(c => "$ " + c.line + "\n" + plain(c)).join("\n"); }

  later() {
    this.count.textContent = this.all.length ? String(this.all.length) : "";
    if (this.timer || this.box.hidden) return;
    this.timer = setTimeout(() => { this.timer = 0; this.draw(); }, redraw);
  }

  draw() {
    if (this.box.hidden) return;
    const bottom = this.box.scrollTop + this.box.clientHeight > this.box.scrollHeight - 40;
    if (this.dirty) { this.box.replaceChildren(); this.dirty = false; }
    if (!this.all.length) {
      const p = document.createElement("p");
      p.textContent = this.supported ? "No command has run yet." : "This terminal does not report commands: no shell runs in it, or one without shell integration.";
      this.box.replaceChildren(p);
      this.dirty = true;
      return;
    }
    for (const c of this.all) {
      if (!c.block) this.make(c);
      if (c.changed) this.update(c);
    }
    if (bottom) this.box.scrollTop = this.box.scrollHeight;
  }

  make(c) {
    const block = c.block = document.createElement("details");
    block.className = "block";
    const head = block.appendChild(document.createElement("summary"));
    head.append(document.createElement("code"), Object.assign(document.createElement("span"), {className: "meta"}));
    const bar = block.appendChild(Object.assign(document.createElement("div"), {className: "bar"}));
    const copy = bar.appendChild(Object.assign(document.createElement("button"), {type: "button", textContent: "Copy output"}));
    copy.onclick = () => this.oncopy?.(plain(c));
    c.pre = block.appendChild(document.createElement("pre"));
    c.pre.tabIndex = 0;
    block.ontoggle = () => { c.changed = true; this.update(c); };
    if (c === this.all.at(-1)) block.open = true;
    this.box.append(block);
  }

  update(c) {
    const [line, meta] = c.block.firstChild.children;
    line.textContent = c.line || "(no command line)";
    line.title = c.line;
    c.block.dataset.unverified = c.unverified;
    c.block.dataset.state = !c.done ? "running" : c.code == null ? "unknown" : c.code === 0 ? "good" : "bad";
    const what = document.createElement("b");
    what.textContent = !c.done ? "running" : c.code == null ? "finished" : c.code === 0 ? "✓ 0" : "✗ " + c.code;
    const when = c.at ? new Date(c.at).toLocaleTimeString() : "";
    meta.replaceChildren(what, [c.unverified && "○ unverified", duration(c.ms), when].filter(Boolean).map(s => "  " + s).join(""));
    meta.title = c.unverified ? "Marks of a shell integration that is not tether's. Any program can print them." : "";
    const open = c.block.open || this.search;
    if (this.search) {
      const hit = c.line.toLowerCase().includes(this.search) || plain(c).toLowerCase().includes(this.search);
      c.block.hidden = !hit;
    } else c.block.hidden = false;
    if (!c.block.open) { if (!open) c.pre.replaceChildren(); return; }
    c.changed = false;
    const bottom = c.pre.scrollTop + c.pre.clientHeight > c.pre.scrollHeight - 30;
    draw(c.pre, lines(c.out.join("").replace(/^[\r\n]+/, ""), maxLines), this.search);
    if (c.cut) {
      const note = Object.assign(document.createElement("span"), {className: "cut", textContent: c.size ? "[only the last " + bytes(c.size) + " of this command are kept here]\n" : "[what this command printed is not kept here any more]\n"});
      c.pre.prepend(note);
    }
    if (bottom && !c.done) c.pre.scrollTop = c.pre.scrollHeight;
  }
}

// plain returns a command's output without colours.
function plain(c) {
  return lines(c.out.join(""), maxLines).map(row => {
    let s = "";
    for (let i = 0; i < row.length; i++) s += row[i]?.[0] ?? " ";
    return s.trimEnd();
  }).join("\n");
}
