// Reads one base64 stream per line and answers with the number of OSC 133 and 633 that xterm.js hands to its handlers.
const { Terminal } = require("@xterm/headless");
const readline = require("readline");

async function main() {
  for await (const line of readline.createInterface({ input: process.stdin })) {
    const term = new Terminal({ cols: 80, rows: 24, allowProposedApi: true, logLevel: "off" });
    let calls = 0;
    for (const number of [133, 633]) {
      term.parser.registerOscHandler(number, () => { calls++; return true; });
    }
    await new Promise((done) => term.write(Buffer.from(line, "base64").toString("utf8"), done));
    term.dispose();
    process.stdout.write(calls + "\n");
  }
}
main();
