// Package bounded keeps what others make a program remember within bounds of number and
// time.
package bounded

import (
	"cmp"
	"container/heap"
	"sync"
	"time"
)

// Map is a map of a bounded number of entries, of which each expires at a time of its
// own. There is no timer: expired entries leave when the map is used. The zero value is
// ready. A Map is safe for concurrent use.
type Map[K comparable, V any] struct {
	Most int // entries; 0 means 4096. Set before use

	mu    sync.Mutex
	at    map[K]*entry[K, V]
	queue queue[K, V] // the one that expires next first
}

type entry[K comparable, V any] struct {
	key   K
	value V
	until time.Time
	i     int // in the queue
}

// Get returns the value of a key; ok is false if there is none, or it has expired.
func (m *Map[K, V]) Get(key K) (value V, ok bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.expireLocked()
	if e := m.at[key]; e != nil {
		return e.value, true
	}
	return value, false
}

// Take is Get that removes the entry.
func (m *Map[K, V]) Take(key K) (value V, ok bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.expireLocked()
	if e := m.at[key]; e != nil {
		m.removeLocked(e)
		return e.value, true
	}
	return value, false
}

// Put sets the value of a key until a time. If the map is full, the entry that expires
// next gives way, and Put returns its value.
func (m *Map[K, V]) Put(key K, value V, until time.Time) (gone V, full bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.putLocked(key, value, until)
}

// Add is Put that changes nothing and returns false if the key has a value.
func (m *Map[K, V]) Add(key K, value V, until time.Time) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.expireLocked()
	if m.at[key] != nil {
		return false
	}
	m.putLocked(key, value, until)
	return true
}

// All returns a copy of the entries.
func (m *Map[K, V]) All() map[K]V {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.expireLocked()
	all := make(map[K]V, len(m.at))
	for key, e := range m.at {
		all[key] = e.value
	}
	return all
}

// Len returns the number of entries.
func (m *Map[K, V]) Len() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.expireLocked()
	return len(m.at)
}

func (m *Map[K, V]) putLocked(key K, value V, until time.Time) (gone V, full bool) {
	m.expireLocked()
	if e := m.at[key]; e != nil {
		m.removeLocked(e)
	} else if full = len(m.at) >= cmp.Or(m.Most, 4096); full {
		gone = m.queue[0].value
		m.removeLocked(m.queue[0])
	}
	if m.at == nil {
		m.at = map[K]*entry[K, V]{}
	}
	e := &entry[K, V]{key: key, value: value, until: until}
	m.at[key] = e
	heap.Push(&m.queue, e)
	return gone, full
}

// expireLocked removes the expired entries.
func (m *Map[K, V]) expireLocked() {
	for now := time.Now(); len(m.queue) > 0 && !now.Before(m.queue[0].until); {
		m.removeLocked(m.queue[0])
	}
}

func (m *Map[K, V]) removeLocked(e *entry[K, V]) {
	heap.Remove(&m.queue, e.i)
	delete(m.at, e.key)
}

// queue implements heap.Interface.
type queue[K comparable, V any] []*entry[K, V]

func (q queue[K, V]) Len() int           { return len(q) }
func (q queue[K, V]) Less(i, j int) bool { return q[i].until.Before(q[j].until) }
func (q queue[K, V]) Swap(i, j int)      { q[i], q[j] = q[j], q[i]; q[i].i, q[j].i = i, j }
func (q *queue[K, V]) Push(e any) {
	one := e.(*entry[K, V])
	one.i = len(*q)
	*q = append(*q, one)
}
func (q *queue[K, V]) Pop() any {
	last := (*q)[len(*q)-1]
	(*q)[len(*q)-1] = nil
	*q = (*q)[:len(*q)-1]
	return last
}
