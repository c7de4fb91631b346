package verdict

import (
	"container/heap"
	"slices"
)

// Graph tells what is known of a repository's commits.
type Graph interface {
	// Commit returns a commit's parents and its time in seconds; ok is false if it is not
	// known.
	Commit(id string) (parents []string, at int64, ok bool)
}

// maxWalk bounds the commits that one question looks at.
const maxWalk = 5000

// walk goes through commits and their ancestors, the newest first.
type walk struct {
	graph   Graph
	queue   queue
	from    map[string]int // by which starts a commit is reached, as bits
	missing []string       // commits that are not known
	full    bool           // there were too many
}

func newWalk(g Graph) *walk { return &walk{graph: g, from: map[string]int{}} }

// add adds a commit that is reached by a start.
func (w *walk) add(id string, start int) {
	before, seen := w.from[id]
	w.from[id] = before | start
	if seen && before|start == before {
		return
	}
	parents, at, ok := w.graph.Commit(id)
	if !ok {
		w.missing = append(w.missing, id)
		return
	}
	heap.Push(&w.queue, commit{id, parents, at})
}

// next returns the newest commit that was not returned, or is reached by a further start
// since; ok is false at the end.
func (w *walk) next() (c commit, ok bool) {
	if len(w.queue) == 0 {
		return c, false
	}
	if len(w.from) > maxWalk {
		w.full = true
		return c, false
	}
	c = heap.Pop(&w.queue).(commit)
	for _, p := range c.parents {
		w.add(p, w.from[c.id])
	}
	return c, true
}

// order returns the place of wanted commits among a commit and its ancestors: 0 for the
// commit itself, more for older ones. Commits that are not among them are left out.
func order(g Graph, head string, wanted map[string]bool) map[string]int {
	places := map[string]int{}
	w := newWalk(g)
	w.add(head, 1)
	for n := 0; len(places) < len(wanted); n++ {
		c, ok := w.next()
		if !ok {
			break
		}
		if wanted[c.id] {
			places[c.id] = n
		}
	}
	return places
}

// between returns the commits that b contains and a does not, without b: those of which
// one may have broken b. ok is false if a is no ancestor of b, or it is not known.
func between(g Graph, a, b string) (all []string, ok bool) {
	const ofA, ofB = 1, 2
	if a == b {
		return nil, true
	}
	w := newWalk(g)
	w.add(b, ofB)
	w.add(a, ofA)
	only := map[string]bool{}
	for w.open(ofB) {
		c, ok := w.next()
		if !ok {
			break
		}
		if only[c.id] = w.from[c.id] == ofB; !only[c.id] {
			delete(only, c.id)
		}
	}
	if w.full || w.from[a]&ofB == 0 || slices.ContainsFunc(w.missing, func(id string) bool { return w.from[id] == ofB }) {
		return nil, false
	}
	for id := range only {
		if id != b && w.from[id] == ofB {
			all = append(all, id)
		}
	}
	return all, true
}

// open reports whether the queue has commits that only this start reaches.
func (w *walk) open(start int) bool {
	for _, c := range w.queue {
		if w.from[c.id] == start {
			return true
		}
	}
	return false
}

type commit struct {
	id      string
	parents []string
	at      int64
}

// queue is a heap of commits, the newest first.
type queue []commit

func (q queue) Len() int           { return len(q) }
func (q queue) Less(i, j int) bool { return q[i].at > q[j].at }
func (q queue) Swap(i, j int)      { q[i], q[j] = q[j], q[i] }
func (q *queue) Push(c any)        { *q = append(*q, c.(commit)) }
func (q *queue) Pop() any {
	last := len(*q) - 1
	c := (*q)[last]
	*q = (*q)[:last]
	return c
}
