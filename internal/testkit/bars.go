package testkit

// Bar is a progress bar, a spinner or a prompt as a program prints it.
type Bar struct {
	Name   string
	Output string
	Text   string // its lines at every interface, joined by newlines
	// Screen is the text of a screen if Output moves the cursor to other rows, where
	// interfaces that show line after line show each row that was drawn.
	Screen string
}

// Bars must read the same at every interface.
var Bars = []Bar{
	{"npm's spinner", "\x1b[1G\x1b[0K⠋\x1b[1G\x1b[0K⠙\x1b[1G\x1b[0K⠹\x1b[1G\x1b[0K\r\nadded 214 packages in 3s\r\n", "\nadded 214 packages in 3s", ""},
	{"npm before 9", "[    ..............] - fetchMetadata: sill\r\x1b[K[#################.] | reify:webpack: timing\r\x1b[Kadded 12 packages\r\n", "added 12 packages", ""},
	{"yarn 1", "[1/4] Resolving packages...\r\n\x1b[2K\x1b[1G[------] 0/512\x1b[2K\x1b[1G[##----] 171/512\x1b[2K\x1b[1G[2/4] Fetching packages...\r\n", "[1/4] Resolving packages...\n[2/4] Fetching packages...", ""},
	{"yarn 4", "\x1b[94m➤\x1b[39m YN0013: │ \x1b[38;5;220m3\x1b[39m packages\r\n➤ YN0000: ⠋ ====----\r\x1b[K➤ YN0000: └ Completed\r\n", "➤ YN0013: │ 3 packages\n➤ YN0000: └ Completed", ""},
	{"pnpm", "Progress: resolved \x1b[96m1\x1b[39m, reused 0\x1b[0K\x1b[1GProgress: resolved \x1b[96m18\x1b[39m, reused 17, done\x1b[0K\r\n", "Progress: resolved 18, reused 17, done", ""},
	{"pip", "   \x1b[38;5;237m━━━━━━━━━━\x1b[0m \x1b[32m0.0/1.2 MB\x1b[0m \x1b[31m?\x1b[0m\r\x1b[2K   \x1b[32m━━━━━━━━━━\x1b[0m \x1b[32m1.2/1.2 MB\x1b[0m \x1b[31m9.1 MB/s\x1b[0m\r\n", "   ━━━━━━━━━━ 1.2/1.2 MB 9.1 MB/s", ""},
	{"tqdm", "\r  0%|          | 0/10 [00:00<?, ?it/s]\r 50%|█████     | 5/10 [00:01<00:01,  4.98it/s]\r100%|██████████| 10/10 [00:02<00:00,  4.99it/s]\r\n", "100%|██████████| 10/10 [00:02<00:00,  4.99it/s]", ""},
	{"tqdm that leaves nothing", "\r 50%|█████     | 5/10\r                      \rdone\r\n", "done", ""},
	{"cargo", "\x1b[1m\x1b[32m   Compiling\x1b[0m serde v1.0.200\r\n\x1b[1m\x1b[36m    Building\x1b[0m [=====>      ] 12/40: serde(build)\x1b[K\r\x1b[K\x1b[1m\x1b[32m    Finished\x1b[0m `dev` profile\r\n", "   Compiling serde v1.0.200\n    Finished `dev` profile", ""},
	{"curl's table", "  % Total    % Received\r\n\r  0  1256    0     0\r100  1256  100  1256\r\n", "  % Total    % Received\n100  1256  100  1256", ""},
	{"curl's bar", "\r##                          7.2%\r############               41.0%\r######################### 100.0%\r\n", "######################### 100.0%", ""},
	{"wget", "\rindex.html            0%[           ]       0  --.-KB/s               \rindex.html          100%[==========>]   1.23K  --.-KB/s    in 0s      \r\n\r\n", "index.html          100%[==========>]   1.23K  --.-KB/s    in 0s\n", ""},
	{"wget's dots", "     0K .......... .......... 50%\b\b\b\b 99%\r\n", "     0K .......... .......... 99%", ""},
	{"apt", "\r0% [Working]\r            \rHit:1 http://deb.debian.org/debian stable InRelease\r\n\r0% [Connecting to deb]\r                      \rReading package lists... 0%\r\rReading package lists... 98%\r\rReading package lists... Done\r\n", "Hit:1 http://deb.debian.org/debian stable InRelease\nReading package lists... Done", ""},
	{"dpkg's database", "(Reading database ... \r(Reading database ... 5%\r(Reading database ... 100%\r(Reading database ... 23910 files currently installed.)\r\n", "(Reading database ... 23910 files currently installed.)", ""},
	{"apt's bar below", "Unpacking a\r\n\x1b7\x1b[24;0f\x1b[42m\x1b[30mProgress: [ 10%]\x1b[49m\x1b[39m [#.....] \x1b8Unpacking b\r\n", "Unpacking a\nProgress: [ 10%] [#.....]\nUnpacking b", "Unpacking a\nUnpacking b\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\nProgress: [ 10%] [#.....]"},
	{"pytest", "\x1b[1mtest_a.py\x1b[0m \x1b[32m.\x1b[0m\x1b[32m.\x1b[0m\x1b[31mF\x1b[0m\x1b[31m                                 [100%]\x1b[0m\r\n", "test_a.py ..F                                 [100%]", ""},
	{"jest", "\x1b[1m\x1b[2mDetermining test suites to run...\x1b[22m\x1b[22m\x1b[999D\x1b[K\r\n\x1b[0m\x1b[7m\x1b[33m\x1b[1m RUNS \x1b[22m\x1b[39m\x1b[27m\x1b[0m a.test.js\r\x1b[2K\x1b[0m\x1b[7m\x1b[32m PASS \x1b[39m\x1b[27m\x1b[0m a.test.js\r\n", "\n PASS  a.test.js", ""},
	{"vitest", "\x1b[?25l ❯ a.test.ts \x1b[2m(3)\x1b[22m\r\x1b[K \x1b[32m✓\x1b[39m a.test.ts \x1b[2m(\x1b[22m\x1b[2m3 tests\x1b[22m\x1b[2m)\x1b[22m\x1b[?25h\r\n", " ✓ a.test.ts (3 tests)", ""},
	{"webpack", "\x1b[32m<s> [webpack.Progress] 10% building 0/1 modules\x1b[39m\x1b[2K\x1b[1G\x1b[32m<s> [webpack.Progress] 98%\x1b[39m\x1b[2K\x1b[1Gwebpack 5.91.0 compiled in 812 ms\r\n", "webpack 5.91.0 compiled in 812 ms", ""},
	{"vite", "transforming (1) \x1b[2msrc/main.ts\x1b[22m\x1b[0K\x1b[1Gtransforming (7) \x1b[2msrc/a.ts\x1b[22m\x1b[0K\x1b[1G\x1b[0K\x1b[32m✓\x1b[39m 31 modules transformed.\r\n", "✓ 31 modules transformed.", ""},
	{"rsync", "          1,024   0%    0.00kB/s    0:00:00  \r     10,485,760 100%   95.24MB/s    0:00:00 (xfr#1, to-chk=0/1)\r\n", "     10,485,760 100%   95.24MB/s    0:00:00 (xfr#1, to-chk=0/1)", ""},
	{"git clone", "remote: Counting objects:  50% (1/2)\x1b[K\rremote: Counting objects: 100% (2/2)\x1b[K\rremote: Counting objects: 100% (2/2), done.\x1b[K\r\nReceiving objects:  42% (430/1024)\rReceiving objects: 100% (1024/1024), 1.10 MiB | 2.20 MiB/s, done.\r\n", "remote: Counting objects: 100% (2/2), done.\nReceiving objects: 100% (1024/1024), 1.10 MiB | 2.20 MiB/s, done.", ""},
	{"ninja", "[1/9] CXX a.o\x1b[K\r[9/9] LINK app\x1b[K\r\n", "[9/9] LINK app", ""},
	{"ninja in a pipe's width", "[1/3] Building C object a.c.o\r[3/3] Linking\x1b[K\r\n", "[3/3] Linking", ""},
	{"a line that is not erased", "downloading\rdone\r\n", "doneloading", ""},
	{"a spinner of backspaces", "Solving: |\b/\b-\b\\\b \bdone\r\n", "Solving: done", ""},
	{"a spinner over a wide character", "編\b\b集\b\b  \b\bok\r\n", "ok", ""},
	{"erase a half", "abcdef\x1b[3D\x1b[1K\r\n", "    ef", ""},
	{"erase, insert and delete characters", "abcdef\r\x1b[2P\x1b[1@-\x1b[2X\r\n", "-  ef", ""},
	{"repeat", "=\x1b[9b>\r\n", "==========>", ""},
	{"saved column", "wait \x1b7|\x1b8/\x1b8-\x1b8ok\r\n", "wait ok", ""},
	{"read -p", "Continue? [y/N] y\r\nok\r\n", "Continue? [y/N] y\nok", ""},
	{"a prompt that waits", "Continue? [y/N] ", "Continue? [y/N]", ""},
	{"sudo", "[sudo] password for ann: \r\nSorry, try again.\r\n", "[sudo] password for ann:\nSorry, try again.", ""},
	{"ssh", "ann@host's password: \r\n\r\nLast login\r\n", "ann@host's password:\n\nLast login", ""},
	{"zsh's prompt", "\x1b[1m\x1b[7m%\x1b[27m\x1b[1m\x1b[0m                 \r \r\r\x1b[0m\x1b[27m\x1b[24m\x1b[J~ % \x1b[K\x1b[?2004hls\x1b[?2004l\r\r\na  b\r\n", "~ % ls\na  b", ""},
	{"bash's line editor", "$ ecoh\b\b\b\x1b[K\x1b[1@h\b\x1b[C\b\x1b[Kcho hi\r\nhi\r\n", "$ echo hi\nhi", ""},
	{"fish's suggestion", "> \x1b[90mls -la\x1b[39m\x1b[6D\x1b[Kls\r\n", "> ls", ""},
	{"fzf's line", "\x1b[?25l> a\x1b[K\x1b[3D\x1b[K> ab  \x1b[33m1/2\x1b[m\x1b[5G\x1b[K\x1b[?25h\r\n", "> ab", ""},
	{"inquirer", "\x1b[32m?\x1b[39m \x1b[1mName\x1b[22m \x1b[2m(app)\x1b[22m \x1b[13D\x1b[2K\x1b[G\x1b[32m✔\x1b[39m \x1b[1mName\x1b[22m \x1b[36mshop\x1b[39m\r\n", "✔ Name shop", ""},
	{"a table with tabs", "NAME\tAGE\r\nweb-1\t3d\r\nüber\t1h\r\n", "NAME    AGE\nweb-1   3d\nüber    1h", ""},
	{"hidden characters", "a\u200bb\u202ec\u00add\x00\x07\r\n", "abcd", ""},
	{"line drawing", "\x1b(0lqqk\x1b(B\r\n", "┌──┐", ""},
	{"docker pull", "a1: Pulling\r\nb2: Pulling\r\n\x1b[2A\x1b[2K\ra1: 50%\x1b[2B\r\x1b[1A\x1b[2K\rb2: done\x1b[1B\r\n", "a1: Pulling\nb2: Pulling\na1: 50%\nb2: done\n", "a1: 50%\nb2: done"},
	{"a screen that is cleared", "old\r\n\x1b[H\x1b[2J\x1b[3JREADY\r\n", "old\nREADY", "old\nREADY"},
}
