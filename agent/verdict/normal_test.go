package verdict

import "testing"

// Pairs of lines from real tools that say the same.
var same = [][2]string{
	{"2026-01-02T03:04:05.678Z listening", "2026-11-12T13:14:15.1Z listening"},
	{"2026-01-02T03:04:05+02:00 up", "2026-01-03T03:04:06+02:00 up"},
	{"2026/01/02 03:04:05 started", "2026/01/03 23:04:05 started"},
	{"[2026-01-02 03:04:05,123] INFO ok", "[2026-01-03 03:04:06,001] INFO ok"},
	{"3:04:05 PM [vite] hmr update /src/a.ts", "11:14:25 AM [vite] hmr update /src/a.ts"},
	{"[3:04:05 PM] Starting compilation in watch mode...", "[10:14:05 AM] Starting compilation in watch mode..."},
	{"Jan  2 03:04:05 box app[123]: ready", "Nov 12 13:04:05 box app[45678]: ready"},
	{"Fri, 02 Jan 2026 03:04:05 GMT", "Mon, 12 Oct 2026 13:04:05 GMT"},
	{"Fri Jan  2 03:04:05 UTC 2026", "Mon Oct 12 13:14:05 UTC 2026"},
	{"ok  \ttether/vocab\t0.012s", "ok  \ttether/vocab\t12.3s"},
	{"--- FAIL: TestA (0.00s)", "--- FAIL: TestA (1.25s)"},
	{"✓ built in 1.23s", "✓ built in 912ms"},
	{"  VITE v7.1.2  ready in 312 ms", "  VITE v7.1.2  ready in 1012 ms"},
	{"Finished `dev` profile [unoptimized + debuginfo] target(s) in 0.52s", "Finished `dev` profile [unoptimized + debuginfo] target(s) in 1m 02s"},
	{"Time:        1.234 s, estimated 2 s", "Time:        0.9 s, estimated 1 s"},
	{"Ran all tests in 3 seconds", "Ran all tests in 12 seconds"},
	{"took 15µs", "took 1.5ms"},
	{"(node:12345) Warning: x", "(node:987) Warning: x"},
	{"pid 12 started", "pid 98765 started"},
	{"server (pid=12) up", "server (pid=345) up"},
	{"==123== Invalid read", "==4567== Invalid read"},
	{"goroutine 7 [running]:", "goroutine 123 [running]:"},
	{"Local:   http://localhost:5173/", "Local:   http://localhost:5174/"},
	{"listening on 127.0.0.1:40123", "listening on 127.0.0.1:3000"},
	{"listening on [::1]:40123", "listening on [::1]:3000"},
	{"Server on port 3000", "Server on port 54321"},
	{"/tmp/ccAbCdEf.o: in main", "/tmp/cc123456.o: in main"},
	{"/tmp/go-build123/b001/x.test", "/tmp/go-build9876543/b001/x.test"},
	{"/var/folders/ab/xyz123/T/tmp.abc/x", "/var/folders/cd/q_99/T/tmp.def/x"},
	{`C:\Users\me\AppData\Local\Temp\abc\x`, `C:\Users\me\AppData\Local\Temp\d12\x`},
	{"HEAD is now at 3f2a91c add x", "HEAD is now at 00b1c2d add x"},
	{"at 67503595d0405ae597922c3c92e2b11813a080c8", "at a5d20cd7403290c52ac01212d824c19d03d4e9ff"},
	{"sha256:" + hex1, "sha256:" + hex2},
	{"id 123e4567-e89b-12d3-a456-426614174000", "id 00000000-1111-2222-a456-4266aaaa4000"},
	{"dist/assets/index-DiwrgTda.js", "dist/assets/index-n_ryQ3BS.js"},
	{"dist/assets/index-D-wrgTda.js", "dist/assets/index-BqXyZ12a.js"},
	{"deps/app-1a2b3c4d5e6f7a8b.d", "deps/app-ffeeddcc00112233.d"},
	{"at 0x7ffee3 in main", "at 0x55aa12345 in main"},
	{"created 1767322800123", "created 1767322999123"},
	{"[ 45%] Building C object a.o", "[  5%] Building C object a.o"},
	{"[3/12] Compiling a.c", "[11/13] Compiling a.c"},
	{"100%|██████████| 10/10 [00:09<00:00, 10.2it/s]", "100%|██████████| 10/10 [00:19<00:00, 1.2it/s]"},
	{"⠋ building", "⠙ building"},
	{"downloaded at 5.1 MB/s", "downloaded at 12 kB/s"},
	{"src/a.ts(12,5): warning TS1: x", "src/a.ts(13,5): warning TS1: x"},
	{"main.c:12:5: warning: unused", "main.c:14:5: warning: unused"},
	{"  12 |   let x = 1;", "  14 |   let x = 1;"},
	{"> 12 |   let x = 1;", "> 114 |   let x = 1;"},
	{`  File "a.py", line 12, in f`, `  File "a.py", line 14, in f`},
	{"    at f (/home/me/app/src/a.js:12:5)", "    at f (/home/me/app/src/a.js:22:15)"},
	{"/home/me/app/a.c: ok", "/home/me/worktree/a.c: ok"},
}

const (
	hex1 = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
	hex2 = "1123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
)

// Pairs of lines that say something different.
var different = [][2]string{
	{"12 passed, 0 failed", "11 passed, 1 failed"},
	{"exit status 1", "exit status 2"},
	{"Tests: 3 total", "Tests: 4 total"},
	{"got 5, want 6", "got 7, want 6"},
	{"v1.2.3", "v1.2.4"},
	{"a.c:12: error: x", "b.c:12: error: x"},
	{"GET /users 200", "GET /users 500"},
	{"undefined: foo", "undefined: bar"},
	{"coverage: 81.2% of statements", "coverage: 12.0% of statements"},
	{"x[3] = 4", "x[4] = 4"},
	{"error TS2304: Cannot find name", "error TS2305: Cannot find name"},
	{"Form-Checkbox.tsx", "Form-Checkmark.tsx"},
	{"failures:3", "failures:0"},
	{"May be wrong", "Can be wrong"},
	{"accessed", "defaced"},
}

func TestNormal(t *testing.T) {
	n := &normalizer{dirs: []string{"/home/me/app", "/home/me/worktree"}}
	for _, c := range same {
		a := string(n.line([]byte(c[0])))
		b := string(n.line([]byte(c[1])))
		if a != b {
			t.Errorf("%q and %q differ: %q, %q", c[0], c[1], a, b)
		}
	}
	for _, c := range different {
		a := string(n.line([]byte(c[0])))
		b := string(n.line([]byte(c[1])))
		if a == b {
			t.Errorf("%q and %q are the same: %q", c[0], c[1], a)
		}
	}
}

// No line makes it read beyond its end or stand still, and a line without anything to
// take out stays, but for its blanks.
func FuzzNormal(f *testing.F) {
	for _, c := range append(same, different...) {
		f.Add([]byte(c[0]))
	}
	f.Fuzz(func(t *testing.T, line []byte) {
		n := &normalizer{dirs: []string{"/home/me"}}
		once := string(n.line(line))
		if len(once) > 2*len(line) {
			t.Errorf("%q became longer: %q", line, once)
		}
	})
}

func BenchmarkNormal(b *testing.B) {
	n := &normalizer{dirs: []string{"/home/me/app"}}
	for b.Loop() {
		for _, c := range same {
			n.line([]byte(c[0]))
		}
	}
	size := 0
	for _, c := range same {
		size += len(c[0])
	}
	b.SetBytes(int64(size))
}
