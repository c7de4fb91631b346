// The text of a terminal as lines that the window wraps, the newest last. The lines are those of xterm.js, so that moves of the cursor, overwritten
// text and full-screen programs look as on the screen.
import {colour, draw} from "./text.js";

const most = 1000; // lines of the screen and above it
const redraw = 200; // ms

export class Lines {
  constructor(term, box, out) {
    this.term = term;
    this.box = box; // scrolls
    this.out = out;
    this.search = "";
    this.spans = []; // of the lines, in order
    this.loose = 0; // lines at the end that may still change: they begin at the mark
  }

  // changed schedules another drawing, if the view is shown.
  changed() {
    if (this.box.hidden || this.timer) return;
    this.timer = setTimeout(() => { this.timer = 0; this.draw(); }, redraw);
  }

  // anew makes the next drawing start from nothing: the terminal was emptied or resized, or the colours have changed.
  anew() {
    this.move(null);
    this.changed();
  }

  move(mark) {
    this.mark?.dispose();
    this.mark = mark;
  }

  // draw brings the lines up to date. Lines above the screen do not change any more, and are drawn once.
  draw() {
    if (this.box.hidden) return;
    const b = this.term.buffer.active, follows = !this.away(), normal = b.type === "normal";
    let from = normal && this.mark && !this.mark.isDisposed ? this.mark.line : -1, end = b.length;
    while (end > Math.max(from, 0) && !b.getLine(end - 1).translateToString(true)) end--;
    if (from < 0 || end - from > most) {
      from = Math.max(0, end - most);
      while (from > 0 && b.getLine(from).isWrapped) from--;
      this.drop(this.spans.length);
    } else this.drop(this.loose);
    let keep = Math.min(Math.max(b.baseY, from), end);
    while (keep > from && b.getLine(keep)?.isWrapped) keep--;
    const parts = document.createDocumentFragment(), cell = b.getNullCell();
    this.loose = 0;
    for (let y = from; y < end;) {
      const row = [];
      if (y >= keep) this.loose++;
      do cells(b.getLine(y), row, cell); while (++y < end && b.getLine(y).isWrapped);
      while (row.length && row.at(-1)[0] === " " && !row.at(-1)[1].bg && !row.at(-1)[1].swap) row.pop();
      const span = document.createElement("span");
      draw(span, [row], this.search);
      parts.append(span);
      this.spans.push(span);
    }
    this.out.append(parts);
    for (const old of this.spans.splice(0, this.spans.length - most)) old.remove();
    this.move(normal ? this.term.registerMarker(keep - b.baseY - b.cursorY) : null);
    if (follows) this.follow();
  }

  // drop removes the last lines.
  drop(n) { for (const old of this.spans.splice(this.spans.length - n, n)) old.remove(); }

  away() { return this.box.scrollTop + this.box.clientHeight < this.box.scrollHeight - 40; }
  follow() { this.box.scrollTop = this.box.scrollHeight; }

  // find marks all matches and shows the next one, the newest first. It returns what to say of them.
  find(text, back) {
    const again = text.toLowerCase() === this.search;
    if (!again) {
      this.search = text.toLowerCase();
      this.move(null);
      this.draw();
    }
    const hits = [...this.out.querySelectorAll("mark")];
    if (!this.search || !hits.length) return this.search ? "none" : "";
    const was = hits.indexOf(this.hit);
    const at = was < 0 ? hits.length - 1 : (was + (back ? hits.length - 1 : 1)) % hits.length;
    this.hit?.classList.remove("now");
    this.hit = hits[at];
    this.hit.classList.add("now");
    this.hit.scrollIntoView({block: "center"});
    return at + 1 + "/" + hits.length;
  }

  text() { return this.out.textContent.trimEnd() + "\n"; }
}

// cells appends the cells of one line of xterm.js as [text, style]. Neighbours of the same look share a style, so that they become one element.
function cells(line, row, cell) {
  let style = row.at(-1)?.[1], look = "";
  for (let x = 0; x < line.length; x++) {
    const c = line.getCell(x, cell);
    if (!c.getWidth()) continue; // the second half of a wide character
    const is = [c.getFgColorMode(), c.getFgColor(), c.getBgColorMode(), c.getBgColor(), c.isBold(), c.isDim(), c.isItalic(), c.isUnderline(), c.isInverse()].join();
    if (is !== look || !style) { style = styleOf(c); look = is; }
    row.push([c.isInvisible() ? " " : c.getChars() || " ", style]);
  }
}

function styleOf(c) {
  const s = {};
  if (!c.isFgDefault()) s.fg = c.isFgRGB() ? hex(c.getFgColor()) : colour(c.getFgColor());
  if (!c.isBgDefault()) s.bg = c.isBgRGB() ? hex(c.getBgColor()) : colour(c.getBgColor());
  if (c.isBold()) s.bold = true;
  if (c.isDim()) s.dim = true;
  if (c.isItalic()) s.italic = true;
  if (c.isUnderline()) s.under = true;
  if (c.isInverse()) s.swap = true;
  return s;
}

const hex = n => "#" + n.toString(16).padStart(6, "0");
