package mcp_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync/atomic"
	"testing"

	"tether/internal/testkit"
	"tether/internal/testkit/must"
)

// otherClient is the official client of MCP for TypeScript, as scripts/test-tools.sh
// installs it.
const otherClient = "../bin/tools/events/node_modules"

// cutClient follows a terminal's matching lines with generic requests of that client, in
// the given version of the protocol. Its connection is cut at random. After each cut it
// asks for more output. It collects each reported event once, by its id.
const cutClient = `
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import * as z from 'zod/v4';
const [url, era, cuts, all] = [process.argv[2], process.argv[3], +process.argv[4], +process.argv[5]];
const any = z.looseObject({}), seen = new Map();
let cursor, doubles = 0, truncated = 0, cut = 0, streams = 0;
const args = { name: 'terminal.line', arguments: { terminalId: 'pty-web', pattern: 'match \\d+$' } };
const options = era === 'new' ? { versionNegotiation: { mode: 'auto' } } : {};
let client, stop, left, current; // current: the stream that is listened to; what a stream that was cut still says is not
const count = () => [...seen.values()].reduce((a, b) => a + b, 0);
async function connect() {
  client = new Client({ name: 'interop', version: '0' }, options);
  client.fallbackNotificationHandler = async n => {
    const p = n.params ?? {}, id = p._meta?.['io.modelcontextprotocol/subscriptionId'];
    if (stop.signal.aborted || id !== current) return;
    if (p.cursor) cursor = p.cursor;
    if (n.method.endsWith('/active') && p.truncated) truncated++;
    if (!n.method.endsWith('/event')) return;
    if (seen.has(p.eventId)) doubles++;
    seen.set(p.eventId, p.data.count);
    if (--left <= 0 || count() >= all) stop.abort();
  };
  const way = new StreamableHTTPClientTransport(new URL(url + '/mcp')), send = way.send.bind(way);
  way.send = (m, o) => { if (m.method === 'events/stream') current = m.id; return send(m, o); };
  await client.connect(way);
}
await connect();
cursor = (await client.request({ method: 'events/poll', params: { ...args, cursor: null } }, any)).cursor;
while (count() < all) {
  await fetch(url + (cut < cuts ? '/more' : '/rest'), { method: 'POST' });
  stop = new AbortController();
  left = cut < cuts ? 1 + Math.floor(Math.random() * 2) : 1e9;
  const random = cut < cuts ? setTimeout(() => stop.abort(), Math.random() * 60) : undefined;
  streams++;
  await client.request({ method: 'events/stream', params: { ...args, cursor } }, any, { signal: stop.signal, timeout: 2 ** 31 - 1 }).catch(() => {});
  clearTimeout(random);
  if (++cut % 7 === 0) { await client.close(); await connect(); }
}
await client.close();
console.log(JSON.stringify({ matches: count(), events: seen.size, doubles, truncated, streams }));
`

// A third-party client whose connection is cut at random still gets every match.
func TestEventsWithAClientThatIsCut(t *testing.T) {
	if _, err := os.Stat(otherClient); err != nil {
		t.Skip("MCP's official client is not installed; scripts/test-tools.sh installs it")
	}
	node := must.Get(filepath.Abs("../bin/tools/node22/node_modules/node/bin/node"))(t)
	if _, err := exec.LookPath(node); err != nil { // or it is not for this system
		t.Skip("Node 22 is not installed; scripts/test-tools.sh installs it")
	}
	const all, cuts = 3_000, 50
	for round := range testkit.Rounds(t, 2, 20) {
		era := []string{"old", "new"}[round%2]
		t.Run(era, func(t *testing.T) {
			s, _, web := eventServer(t)
			var printed atomic.Int64
			mux := http.NewServeMux()
			mux.Handle("/mcp", s)
			more := func(lines int) {
				var b bytes.Buffer
				for range lines {
					if n := printed.Add(1); n <= all {
						fmt.Fprintf(&b, "noise\r\nmatch %d\r\n", n)
					}
				}
				if b.Len() > 0 {
					web.print(b.String())
				}
			}
			mux.HandleFunc("/more", func(http.ResponseWriter, *http.Request) { more(all / (cuts + 10)) })
			mux.HandleFunc("/rest", func(http.ResponseWriter, *http.Request) { more(all) })
			srv := httptest.NewServer(mux)
			defer srv.Close()
			defer srv.CloseClientConnections()
			dir := t.TempDir()
			modules := must.Get(filepath.Abs(otherClient))(t)
			if err := os.Symlink(modules, filepath.Join(dir, "node_modules")); err != nil {
				t.Skip("no symbolic links: ", err)
			}
			script := filepath.Join(dir, "cut.mjs")
			must.Do(t, os.WriteFile(script, []byte(cutClient), 0o600))
			ctx, cancel := context.WithTimeout(t.Context(), testkit.Patience)
			defer cancel()
			cmd := exec.CommandContext(ctx, node, script, srv.URL, era, strconv.Itoa(cuts), strconv.Itoa(all))
			cmd.Stderr = os.Stderr
			out, err := cmd.Output()
			if err != nil {
				t.Fatalf("%v: %s", err, out)
			}
			var got struct{ Matches, Events, Doubles, Truncated, Streams int }
			if err := json.Unmarshal(out, &got); err != nil {
				t.Fatalf("%v in %s", err, out)
			}
			t.Logf("%+v", got)
			if got.Matches != all || got.Truncated > 0 || got.Streams <= cuts {
				t.Errorf("accounted for %+v, want %d matches over more than %d streams", got, all, cuts)
			}
		})
	}
}
