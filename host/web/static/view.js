// One terminal, live. The page sends no input: no input handler of xterm.js is connected, so that neither keys nor xterm.js's answers to a
// program reach the host.
import {Terminal} from "./vendor/xterm.mjs";
import {SearchAddon} from "./vendor/addon-search.mjs";
import {Blocks} from "./blocks.js";
import {Lines} from "./lines.js";
import {openPreview, pathAt} from "./preview.js";
import {Problems} from "./problems.js";
import {Runs} from "./runs.js";
import {bytes, clean, colour, place, readable, safeLink, shown, when} from "./text.js";
import {address, states} from "./list.js";

const scrollback = 5000; // lines
const narrowest = 6, margin = 30; // px: a column that can be read, of a font of 10 px; what the screen has beside its columns
// If more than enough + newest waits to be drawn, the view unsubscribes until everything is drawn, and then requests the newest state. So a
// flood needs little memory and the page stays responsive. Of a long state, the view draws the newest characters.
const enough = 1 << 20, newest = 512 << 10; // characters
const dark = {background: "#0f1216", foreground: "#e4e8ee", cursor: "#e4e8ee", selectionBackground: "#2f5b8f", black: "#3b4048", red: "#f2646b", green: "#4cc37b",
  yellow: "#d3a61c", blue: "#6ba4f8", magenta: "#cf8be0", cyan: "#3fbccb", white: "#c9d1d9", brightBlack: "#7d8794", brightRed: "#ff8f94", brightGreen: "#7ddba0",
  brightYellow: "#f0cc5b", brightBlue: "#98c1ff", brightMagenta: "#e2adf0", brightCyan: "#79dbe6", brightWhite: "#f3f6f9"};
const light = {background: "#ffffff", foreground: "#1b1f24", cursor: "#1b1f24", selectionBackground: "#b5d5ff", black: "#1b1f24", red: "#b3202c", green: "#1c7a35",
  yellow: "#8a6100", blue: "#0b57b8", magenta: "#8a2fa8", cyan: "#0b6e7d", white: "#6b7480", brightBlack: "#59626e", brightRed: "#d03a44", brightGreen: "#1f8f40",
  brightYellow: "#9a6f00", brightBlue: "#1f6fd6", brightMagenta: "#a044be", brightCyan: "#12828f", brightWhite: "#3b4048"};
const marks = {matchBackground: "#ffd54d", activeMatchBackground: "#ff9a3d", matchOverviewRuler: "#d9a400", activeMatchColorOverviewRuler: "#ff7a00"};
const $ = id => document.getElementById(id);

export class View {
  // stored returns where the host serves the state of a parked terminal. Its machine is away, and AHP does not know it.
  constructor(host, stored = t => "/terminals/" + t.id + "/state") {
    this.host = host;
    this.stored = stored;
    this.waiting = 0;
    this.shown = "screen"; // the tab
    this.blocks = new Blocks($("commands"), $("count"));
    this.problems = new Problems($("problems"), $("problem-count"), $("brief"));
    this.runs = $("runs") && new Runs($("runs"), $("verdict")); // guests see none
    this.blocks.oncopy = text => this.put(text);
    // lineHeight: at 1, the lowest row of pixels of a line is cut off, and with it the underscores of common fonts.
    this.term = new Terminal({disableStdin: true, scrollback, allowProposedApi: true, cursorBlink: false, cursorInactiveStyle: "outline", fontSize: 14,
      fontFamily: 'ui-monospace, "SF Mono", Menlo, Consolas, "DejaVu Sans Mono", monospace', logLevel: "off", minimumContrastRatio: 4.5, lineHeight: 1.1,
      linkHandler: {activate: (_, text) => this.ask(text), allowNonHttpProtocols: false}});
    this.search = new SearchAddon();
    this.term.loadAddon(this.search);
    this.term.open($("term"));
    this.term.textarea.tabIndex = -1;
    this.term.textarea.setAttribute("aria-hidden", "true");
    this.term.attachCustomKeyEventHandler(() => false);
    this.search.onDidChangeResults(r => { $("found").textContent = $("find").value ? (r.resultCount ? (r.resultIndex + 1) + "/" + r.resultCount : "none") : ""; });
    this.term.onScroll(() => this.scrolled());
    this.term.onRender(() => this.scrolled());
    this.lines = new Lines(this.term, $("text"), $("lines"));
    $("text").addEventListener?.("scroll", () => this.scrolled());
    new ResizeObserver(() => this.fit()).observe($("screen"));
    new ResizeObserver(() => this.prefer()).observe($("view"));
  }

  theme(isDark) {
    const theme = isDark ? dark : light;
    this.term.options.theme = theme;
    // xterm.js adapts colours to their background, but not the default colour of inverse text (its class 257).
    const named = Object.values(theme).slice(4);
    $("inverse").textContent = Array.from({length: 256}, (_, n) => {
      const ground = named[n] ?? colour(n), ink = readable(theme.background, ground);
      return ink === theme.background ? "" : `.xterm .xterm-bg-${n}.xterm-fg-257 { color: ${ink} !important; }\n`;
    }).join("");
    this.blocks.recolour();
    this.lines.anew();
  }

  // show switches to a terminal of the list.
  show(t) {
    if (this.t && (this.t.uri !== t.uri || !this.t.until !== !t.until)) this.leave();
    const first = !this.t;
    this.t = t;
    this.facts();
    if (!first) return;
    this.state = null;
    this.over = false;
    this.reset();
    this.blocks.reset(false);
    this.problems.reset(t.id);
    this.runs?.reset(t);
    this.note("");
    this.prefer();
    $("download").href = "/terminals/" + t.id + ".txt?download";
    this.sub = {load: (s, how) => this.load(s, how), apply: a => this.apply(a), gone: () => this.gone(),
      replayed: n => this.note(n ? "Connected again. Nothing was missed." : "Connected again.", "good", 4000)};
    if (t.until) this.fetch(t, this.sub);
    else this.host.subscribe(t.uri, this.sub);
  }

  // prefer chooses between the screen and its text as the person did for this terminal in this tab. Otherwise it is the text if the terminal is
  // wider than the window, so that its columns would be too small to read.
  prefer() {
    if (!this.t || !["screen", "text"].includes(this.shown)) return;
    const wide = this.t.cols * narrowest > $("view").clientWidth - margin;
    const want = globalThis.sessionStorage?.getItem("view " + this.t.id) ?? (wide ? "text" : "screen");
    if (want !== this.shown) this.tab(want);
  }

  // choose shows the screen or the text, and remembers that.
  choose(name) {
    if (this.t) globalThis.sessionStorage?.setItem("view " + this.t.id, name);
    this.tab(name);
  }

  // parked reports whether the terminal's machine is away, so that only the host has its text.
  get parked() { return Boolean(this.t?.until); }

  // fetch shows the text that the host keeps of a parked terminal.
  async fetch(t, sub) {
    try {
      const answer = await fetch(this.stored(t));
      if (this.sub !== sub) return;
      if (!answer.ok) return this.gone();
      const kept = await answer.json();
      if (this.sub !== sub) return;
      this.load(kept.state, "first");
      this.note("The machine is away since " + when(t.away) + ". " + (t.dropped ? "The host does not keep its output any more: " + clean(t.dropped) + "." : "This is its output until then; the host keeps it until " + when(t.until) + "."));
    } catch {
      if (this.sub === sub) this.note("The host cannot be reached.", "bad");
    }
  }

  leave() {
    if (!this.t) return;
    if (!this.parked) this.host.unsubscribe(this.t.uri);
    this.t = this.sub = null;
    this.runs?.reset(null);
    this.waiting = 0;
    this.behind = false;
  }

  gone() { this.over = true; this.note("This terminal is gone from the host. You see its last state.", "bad"); }

  note(text, kind = "", ms = 0) {
    clearTimeout(this.noted);
    const n = $("notice");
    n.textContent = text;
    n.dataset.kind = kind;
    n.hidden = !text;
    if (ms) this.noted = setTimeout(() => { n.hidden = true; }, ms);
  }

  load(s, how) {
    this.state = s;
    this.reset();
    if (s.cols && s.rows) this.resize(s.cols, s.rows);
    this.fit();
    this.blocks.load(s.content, s.supportsCommandDetection);
    this.problems.changed();
    const text = (s.content ?? []).map(p => p.type === "command" ? p.output : p.value).join(""), before = s._meta?.["tether/screen"];
    if (text.length > enough) this.write(text.slice(text.indexOf("\n", text.length - newest) + 1));
    else if (before) this.replay(before, text, s);
    else this.write(text);
    if (how === "resync") this.note("Connected again. Too much was printed meanwhile to send all of it: this is the newest state.", "", 8000);
    else if (how === "anew") this.note("The host does not know this page any more; perhaps it was restarted. This is the present state.", "", 8000);
    else if (how === "late") this.note("Connected again.", "good", 4000);
    else if (how === "caught") this.note("Output came faster than this page can draw it. This is the newest state.", "", 4000);
    this.facts();
  }

  apply(a) {
    const s = this.state;
    if (!s) return;
    this.problems.changed();
    switch (a.type) {
    case "terminal/data":
      this.blocks.data(a.data);
      this.write(a.data);
      if (a._meta?.["tether/screen"]) this.draw(a._meta["tether/screen"]);
      if (a._meta?.["tether/missingBytes"]) this.note("The machine lost " + bytes(a._meta["tether/missingBytes"]) + " of output here.");
      if (a._meta?.["tether/skippedBytes"]) this.note("This page fell behind; " + bytes(a._meta["tether/skippedBytes"]) + " were skipped.", "", 6000);
      return;
    case "terminal/cleared":
      this.reset();
      this.blocks.reset(s.supportsCommandDetection);
      break;
    case "terminal/resized":
      s.cols = a.cols;
      s.rows = a.rows;
      this.resize(a.cols, a.rows);
      break;
    case "terminal/commandDetectionAvailable":
      s.supportsCommandDetection = this.blocks.supported = true;
      break;
    case "terminal/commandExecuted":
      this.blocks.start(a.commandId, a.commandLine, a.timestamp, a._meta);
      break;
    case "terminal/commandFinished":
      this.blocks.finish(a.commandId, a.exitCode, a.durationMs);
      this.runs?.changed();
      break;
    case "terminal/titleChanged": s.title = a.title; break;
    case "terminal/cwdChanged": s.cwd = a.cwd; break;
    case "terminal/exited": s.lifecycle = {status: "exited", exitCode: a.exitCode}; this.runs?.changed(); break;
    }
    this.facts();
  }

  // replay draws the retained text up to before.after, then the screen before, then the rest of the text in the sizes that the terminal
  // had.
  replay(before, text, s) {
    const data = new TextEncoder().encode(text), decoder = new TextDecoder();
    let at = before.after ?? 0;
    if (at) this.write(decoder.decode(data.subarray(0, at)));
    this.draw(before);
    for (const [after, cols, rows] of before.sizes ?? []) {
      if (after > at) this.write(decoder.decode(data.subarray(at, at = after), {stream: true}));
      this.resize(cols, rows);
    }
    this.write(decoder.decode(data.subarray(at)));
    if (s.cols && s.rows) this.resize(s.cols, s.rows);
  }

  // draw shows a screen. Earlier output stays above it.
  draw({cols, rows, data}) {
    this.write("\x18\x1b[?1049l\x1b[?20;45;1000;1002;1003;1006l\x1b[!p\x1b[999H" + "\n".repeat(clamp(rows)) + "\x1b[H");
    this.resize(cols, rows);
    this.write(data ?? "");
  }

  // reset empties the terminal after everything that was written before is drawn. CAN ends a control sequence that is not complete.
  reset() { this.term.write("\x18", () => { this.term.reset(); this.lines.anew(); }); }

  // resize changes the size after everything that was written before is drawn.
  resize(cols, rows) {
    const {sub} = this;
    this.term.write("", () => {
      if (this.sub !== sub) return;
      this.term.resize(clamp(cols), clamp(rows));
      this.lines.anew();
      this.fit();
    });
  }

  write(text) {
    if (!text || this.behind) return;
    const {sub} = this, size = text.length;
    this.waiting += size;
    if (this.waiting > enough + newest && this.t && !this.parked) {
      this.behind = true;
      this.waiting -= size;
      this.host.unsubscribe(this.t.uri);
      return;
    }
    this.term.write(shown(text), () => {
      if (this.sub !== sub) return;
      this.waiting -= size;
      this.lines.changed();
      if (this.behind && this.waiting === 0) {
        this.behind = false;
        this.host.subscribe(this.t.uri, sub, "caught");
      }
    });
  }

  // facts shows what is known of the terminal besides its output, from its state or, before that has arrived, from the list.
  facts() {
    const {t, state: s} = this;
    $("machine").textContent = clean(t.machine);
    $("name").textContent = clean(t.name);
    const ended = s?.lifecycle?.status === "exited";
    const [text, kind] = ended ? states.exited({exitCode: s.lifecycle.exitCode}) : states[t.state](t);
    $("state").textContent = text;
    $("state").dataset.state = kind;
    $("glance").textContent = ["awaits", "bad", "away"].includes(kind) ? text : "";
    $("glance").dataset.state = kind;
    const running = this.blocks.all.at(-1), line = running && !running.done ? running.line : clean(t.running);
    const f = $("facts");
    f.replaceChildren();
    const add = e => { if (f.childNodes.length) f.append(" · "); f.append(e); };
    const title = clean(s?.title ?? t.title);
    if (title && title !== clean(t.name)) add(title);
    if (line && !ended) { const c = document.createElement("code"); c.textContent = line; add("runs "); f.append(c); }
    if (t.label) add(clean(t.label));
    if (safeLink(t.url)) {
      const link = Object.assign(document.createElement("a"), {href: t.url, textContent: address(t.url)});
      link.onclick = e => { e.preventDefault(); this.ask(t.url); };
      add(link);
    }
    for (const p of t.ports ?? []) {
      const open = Object.assign(document.createElement("button"), {type: "button", className: "port", textContent: "open port " + p.port, title: "See what this program serves, in a window of its own"});
      open.onclick = async () => { const why = await openPreview("/previews", {terminal: t.id, port: p.port, path: pathAt(t.url, p.port)}, "_blank"); if (why) this.note(why, "bad", 10000); };
      const said = document.createElement("span");
      said.append(open, " for all who see this terminal" + (p.write ? ", for writing too" : "") + (p.until ? ", until " + when(p.until) : "") + ", fetched " + p.fetched + "×");
      add(said);
    }
    if (s?.cwd ?? t.cwd) add(place(s?.cwd ?? t.cwd));
    add((t.target === "client" ? "held by " : "a shell of the host, held by ") + clean(t.claim));
    add((s?.cols ?? t.cols) + "×" + (s?.rows ?? t.rows));
    add(t.watching + " watching");
    f.title = f.textContent;
    document.title = clean(t.machine) + "/" + clean(t.name) + " – tether-host";
  }

  // fit chooses the largest font size, from 8.5 to 14, at which all columns are visible.
  fit() {
    const box = $("screen"), drawn = this.term.element?.querySelector(".xterm-screen");
    if (!drawn || !box.clientWidth || box.hidden) return;
    const size = this.term.options.fontSize, cell = drawn.clientWidth / this.term.cols / size;
    if (!cell) return;
    const want = Math.max(8.5, Math.min(14, Math.floor((box.clientWidth - 30) / this.term.cols / cell * 2) / 2));
    if (Math.abs(want - size) >= 0.5) this.term.options.fontSize = want;
    requestAnimationFrame(() => { if (!this.away()) box.scrollTop = box.scrollHeight; });
  }

  away() { const b = this.term.buffer.active; return b.viewportY < b.baseY; }
  scrolled() { $("follow").hidden = this.shown === "text" ? !this.lines.away() : this.shown !== "screen" || !this.away(); }
  follow() {
    if (this.shown === "text") return this.lines.follow();
    this.term.scrollToBottom();
    $("screen").scrollTop = $("screen").scrollHeight;
  }

  scroll(key) {
    if ($("screen").hidden) {
      const box = $(this.shown);
      if (key === "Home") box.scrollTop = 0; else if (key === "End") box.scrollTop = box.scrollHeight;
      else box.scrollBy(0, (key === "PageUp" ? -0.9 : 0.9) * box.clientHeight);
      return;
    }
    if (key === "Home") this.term.scrollToTop(); else if (key === "End") this.follow(); else this.term.scrollPages(key === "PageUp" ? -1 : 1);
  }

  tab(name) {
    this.shown = name;
    for (const n of ["screen", "text", "commands", "problems", "runs"].filter(n => $(n))) {
      $(n).hidden = n !== name;
      $("tab-" + n).setAttribute("aria-selected", String(n === name));
    }
    if (name === "screen") this.fit(); else if (name === "text") this.lines.draw(); else if (name === "commands") this.blocks.draw();
    if (name === "text") this.lines.follow();
    this.problems.show(name === "text");
    this.runs?.draw();
    this.scrolled();
    this.find();
  }

  find(back) {
    const text = $("find").value;
    if (this.shown === "text") {
      $("found").textContent = this.lines.find(text, back);
      return;
    }
    if ($("screen").hidden) {
      const n = ({problems: this.problems, runs: this.runs}[this.shown] ?? this.blocks).find(text);
      $("found").textContent = n < 0 ? "" : n || "none";
      return;
    }
    this.blocks.search = "";
    if (!text) { this.search.clearDecorations(); this.term.clearSelection(); $("found").textContent = ""; return; }
    const o = {decorations: marks};
    if (back) this.search.findPrevious(text, o); else this.search.findNext(text, o);
  }

  // copy copies the selection, or everything.
  copy() {
    if (!$("screen").hidden && this.term.hasSelection()) return this.put(this.term.getSelection());
    if (String(getSelection())) return this.put(String(getSelection()));
    if ($("screen").hidden) return this.put({text: this.lines, commands: this.blocks, problems: this.problems, runs: this.runs}[this.shown].text());
    const b = this.term.buffer.active, out = [];
    for (let i = 0; i < b.length; i++) {
      const line = b.getLine(i), text = line.translateToString(true);
      if (line.isWrapped && out.length) out[out.length - 1] += text; else out.push(text);
    }
    return this.put(out.join("\n").trimEnd() + "\n");
  }

  async put(text) {
    try {
      if (navigator.clipboard) await navigator.clipboard.writeText(text);
      else { // not over https
        const area = document.body.appendChild(Object.assign(document.createElement("textarea"), {value: text}));
        area.select();
        document.execCommand("copy");
        area.remove();
      }
      this.note("Copied " + bytes(text.length) + ".", "good", 2500);
    } catch {
      this.note("The browser does not let this page copy.", "bad", 5000);
    }
  }

  // ask shows where a link leads, and opens it only if the person agrees.
  ask(text) {
    const url = safeLink(text);
    if (!url) { this.note("A program wrote a link that is not to a web page; it is not opened.", "bad", 5000); return; }
    $("where").textContent = clean(url);
    $("go").href = url;
    $("ask").showModal();
  }
}

const clamp = n => Math.max(1, Math.min(1000, n | 0));
