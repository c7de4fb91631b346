// Shows streams on xterm.js. Each line of the input is "cols rows base64"; each line of the output is a JSON object: the rows that the
// screen shows, and the cursor. It is null where xterm.js 6.0.0 itself throws: CSI 1 J in the last column of the last row,
// https://github.com/xtermjs/xterm.js (InputHandler.eraseInDisplay sets isWrapped of a line beyond the buffer).
const { Terminal } = require("@xterm/headless");
const lines = require("fs").readFileSync(0, "utf8").split("\n").filter((l) => l);
let failed = () => {};
process.on("uncaughtException", () => failed());
(async () => {
  for (const line of lines) {
    const [cols, rows, data] = line.split(" ");
    const t = new Terminal({ cols: +cols, rows: +rows, allowProposedApi: true, logLevel: "off" });
    const ok = await new Promise((done) => {
      failed = () => done(false);
      t.write(Buffer.from(data || "", "base64"), () => done(true));
    });
    let screen = null;
    if (ok) {
      const b = t.buffer.active;
      screen = { rows: [], col: b.cursorX, row: b.cursorY };
      for (let y = 0; y < +rows; y++) screen.rows.push(b.getLine(b.baseY + y).translateToString(true));
    }
    process.stdout.write(JSON.stringify(screen) + "\n");
    t.dispose();
  }
})();
