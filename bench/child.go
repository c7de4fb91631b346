package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"strconv"

	"tether/agent/holder"
)

// childArg, as the first argument, makes this binary one of these:
//
//	bench child CORPUS BLOCKS   waits for a typed line, then prints that many blocks; 0: endlessly
//	bench child observe URL URI watches a terminal at the host
//	bench child view SOCKET ID N STALLED
//	                            runs N user interfaces that show a terminal
//	bench child daemon PROFILE  runs the daemon, and writes its CPU profile
//	bench child holder ID       holds one of its terminals
//	bench child host PROFILE    runs the host, and writes its CPU profile
//	bench child ports-host -    runs the host
//	bench child page FILE       is a dev server, and writes its port to the file
//	bench child web -           serves a page and its parts
//	bench child relay-host -, relay-daemon URL HELD, relay-holder SOCKET
//	                            runs a part of a reference peer
const childArg = "child"

// childReady is what a child prints before it waits for the line.
const childReady = "ready\n"

// childWrites are the sizes of a child's writes in bytes, which take turns: sizes that
// stdio, shell tools and large buffers use.
var childWrites = []int{4 << 10, 16 << 10, 64 << 10, 8 << 10, 32 << 10}

// child runs as the child that args, without childArg, describe.
func child(args []string, in io.Reader, out io.Writer) error {
	if len(args) < 2 {
		return fmt.Errorf("child: want a kind and an argument, got %q", args)
	}
	switch args[0] {
	case "daemon":
		return profile(args[1], serveDaemon)
	case "holder":
		os.Exit(holder.Main(args[1:]))
	case "host":
		return profile(args[1], serveHost)
	case "ports-host":
		return serveHost(context.Background())
	case "page":
		return servePages(args[1])
	case "view":
		return view(args[1:], in, out)
	case "web":
		return serveWeb()
	case "relay-host":
		return serveRelayHost()
	case "relay-daemon":
		return serveRelayDaemon(args[1], args[len(args)-1] == "true")
	case "relay-holder":
		return relayHolder(args[1])
	case "observe":
		return observeForever(args[1], args[len(args)-1])
	}
	c, err := findCorpus(args[0])
	if err != nil {
		return err
	}
	blocks, err := strconv.Atoi(args[1])
	if err != nil || blocks < 0 {
		return fmt.Errorf("child: %q is no number of blocks", args[1])
	}
	return c.print(blocks, in, out)
}

// print prints childReady, waits for a line, and prints that many blocks; 0 means until
// writing fails.
func (c corpus) print(blocks int, in io.Reader, out io.Writer) error {
	block := c.block()
	if _, err := io.WriteString(out, childReady); err != nil {
		return err
	}
	if _, err := bufio.NewReader(in).ReadString('\n'); err != nil {
		return err
	}
	return flow(out, block, blocks)
}

// flow writes block that many times, in pieces of childWrites; 0 means until writing
// fails.
func flow(out io.Writer, block []byte, blocks int) error {
	turn := 0
	for n := 0; n < blocks || blocks == 0; n++ {
		for rest := block; len(rest) > 0; turn++ {
			size := min(len(rest), childWrites[turn%len(childWrites)])
			if _, err := out.Write(rest[:size]); err != nil {
				return err
			}
			rest = rest[size:]
		}
	}
	return nil
}

// work is a child with a known amount of output.
type work struct {
	corpus corpus
	blocks int
	want   text // the terminal's whole output: childReady, the echo of the line, the blocks
}

// newWork returns a child that prints about that many MB, but at least one block.
func newWork(c corpus, megabytes int) work {
	block := c.block()
	w := work{corpus: c, blocks: max(1, megabytes*1e6/len(block))}
	shown := onTerminal(block)
	w.want.add(onTerminal([]byte(childReady + "\n")))
	for range w.blocks {
		w.want.add(shown)
	}
	return w
}

// argv is the command line of the child.
func (w work) argv() ([]string, error) {
	self, err := os.Executable()
	return []string{self, childArg, w.corpus.name, strconv.Itoa(w.blocks)}, err
}
