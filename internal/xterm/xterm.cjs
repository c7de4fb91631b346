// Shows streams on xterm.js without scrollback. The first line of the input has the widths of characters that are not one column wide, as
// FROM-TO-WIDTH in hexadecimal, separated by commas. Each other line is a stream, "cols rows part part ...": a part is base64, or
// "=COLSxROWS", a change of the size. Each line of the output is a JSON object: the rows with each cell, the cursor, the modes and the
// title, as our screens' Dump in tests writes them. It is null where xterm.js 6.0.0 itself throws: at a change of the size, or at CSI 1 J
// in the last column of the last row, https://github.com/xtermjs/xterm.js (InputHandler.eraseInDisplay sets isWrapped of a line beyond the
// buffer).
const { Terminal } = require("@xterm/headless");
let failed = () => {};
process.on("uncaughtException", () => failed());
const hex = (n) => (n >>> 0).toString(16);
// pure removes bits that an earlier RGB colour has left in a palette colour.
const pure = (c) => ((c >>> 24) & 3) < 3 ? c & ~0xffff00 : c;
const dump = (t) => {
  const core = t._core;
  const b = t.buffer.active;
  const rows = [];
  for (let y = 0; y < t.rows; y++) {
    const line = b.getLine(b.baseY + y);
    const cells = [];
    for (let x = 0; x < t.cols; x++) {
      const c = line.getCell(x);
      const chars = c.getChars() || (c.getWidth() ? " " : "");
      let text = `${chars}|${c.getWidth()}`;
      const fg = pure(c.fg & ~0x10000000), bg = pure(c.bg & ~0x10000000);
      const style = c.getUnderlineStyle();
      if (fg || bg || style) text += `|${hex(fg)}|${hex(bg)}`;
      if (style) text += `|${style}|${hex(c.hasExtendedAttrs() ? pure(c.extended.underlineColor) : 0)}`;
      if (c.hasExtendedAttrs() && c.extended.urlId) text += `|${core._oscLinkService.getLinkData(c.extended.urlId).uri}`;
      cells.push(text);
    }
    rows.push(cells.join(" "));
  }
  const m = t.modes;
  const modes = [b.type, m.insertMode, m.originMode, m.wraparoundMode, m.reverseWraparoundMode, m.applicationCursorKeysMode, m.applicationKeypadMode,
    m.sendFocusMode, m.bracketedPasteMode, m.mouseTrackingMode, core.coreService.isCursorHidden, t.options.convertEol].map(String).join(" ");
  return { rows, col: b.cursorX, row: b.cursorY, modes, title: t.title_ || "" };
};
const shown = (t) => {
  try {
    return dump(t);
  } catch {
    return null;
  }
};
// The widths of characters in today's terminals. xterm.js itself has those of Unicode 6, in which emoji are narrow.
const known = {};
const widths = (ranges) => (known[ranges] ??= provider(ranges));
const provider = (ranges) => {
  const table = ranges.split(",").map((r) => r.split("-").map((n) => parseInt(n, 16)));
  const cache = new Map();
  const look = (c) => (c < 32 ? 0 : (table.find(([from, to]) => c >= from && c <= to) || [0, 0, 1])[2]);
  const wcwidth = (c) => {
    if (!cache.has(c)) cache.set(c, look(c));
    return cache.get(c);
  };
  return {
    version: "now",
    wcwidth,
    charProperties(c, before) {
      let width = wcwidth(c);
      const had = (before >> 1) & 3;
      const join = width === 0 && before !== 0 && had > 0;
      if (join) width = Math.max(width, had);
      return ((width & 3) << 1) | (join ? 1 : 0);
    },
  };
};
(async () => {
  const [first, ...lines] = require("fs").readFileSync(0, "utf8").split("\n").filter((l) => l);
  for (const line of lines) {
    const [cols, rows, ...parts] = line.split(" ");
    const t = new Terminal({ cols: +cols, rows: +rows, scrollback: 0, allowProposedApi: true, logLevel: "off" });
    t.unicode.register(widths(first));
    t.unicode.activeVersion = "now";
    t.onTitleChange((title) => (t.title_ = title));
    let ok = true;
    for (const part of parts) {
      if (part[0] === "=") {
        const [c, r] = part.slice(1).split("x");
        try {
          t.resize(+c, +r);
        } catch {
          ok = false; // xterm.js miscounts rows that were broken at the margin
        }
        continue;
      }
      ok = ok && (await new Promise((done) => {
        failed = () => done(false);
        t.write(Buffer.from(part, "base64"), () => done(true));
      }));
    }
    process.stdout.write(JSON.stringify(ok ? shown(t) : null) + "\n");
    t.dispose();
  }
})();
