// Writes a stream of 80x24 to xterm.js in pieces, and prints after each what it shows: every cell with its colours and attributes, the cursor,
// and the modes.
const { Terminal } = require("@xterm/headless");
const data = require("fs").readFileSync(0);
const term = new Terminal({ cols: 80, rows: 24, allowProposedApi: true });
const show = () => {
  const buffer = term.buffer.active;
  const lines = [];
  for (let y = 0; y < term.rows; y++) {
    const line = buffer.getLine(buffer.baseY + y);
    let text = "";
    for (let x = 0; x < term.cols; x++) {
      const c = line.getCell(x);
      const flags = [c.isBold(), c.isItalic(), c.isDim(), c.isUnderline(), c.isBlink(), c.isInverse(), c.isInvisible(), c.isStrikethrough(), c.isOverline()];
      text += JSON.stringify([c.getChars(), c.getWidth(), c.getFgColorMode(), c.getFgColor(), c.getBgColorMode(), c.getBgColor(), flags.map((f) => (f ? 1 : 0)).join("")]);
    }
    lines.push(text);
  }
  lines.push(JSON.stringify([buffer.type, buffer.cursorX, buffer.cursorY, term.modes]));
  return lines.join("\n");
};
const crypto = require("crypto");
const step = (at) => {
  if (at >= data.length) {
    console.log(show());
    return;
  }
  term.write(data.subarray(at, at + 500), () => {
    console.log(crypto.createHash("sha256").update(show()).digest("hex"));
    step(at + 500);
  });
};
step(0);
