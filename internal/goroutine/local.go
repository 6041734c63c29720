package goroutine

import (
	"math/bits"
	"sync"
	"sync/atomic"
)

// Local keeps one *V per goroutine. The zero value is empty and ready.
type Local[V any] struct {
	table atomic.Pointer[table[V]] // nil: no values at all

	mu   sync.Mutex // guards table's entries and what follows against other writers
	live int        // values in table
	used int        // slots of table with an id, live or not
}

// table is a hash table with linear probing. Readers run concurrently with one writer:
// entries are written in place, and to change its size a table is replaced by a copy.
// Only its own goroutine writes an entry and reads its value; other readers skip the
// entry, so they may see any mixture of its old and new contents.
type table[V any] struct {
	shift uint // 64 - log2(len(slots))
	slots []slot[V]
}

type slot[V any] struct {
	id    atomic.Int64      // 0: never used, the end of every search
	value atomic.Pointer[V] // nil: deleted, free for another id
}

// minSlots avoids resizing for a handful of goroutines.
const minSlots = 64

// Get returns the calling goroutine's value, nil if it has none.
func (l *Local[V]) Get() *V {
	t := l.table.Load()
	if t == nil {
		return nil
	}

	id := id()
	for i := t.home(id); ; i = t.next(i) {
		switch t.slots[i].id.Load() {
		case id:
			return t.slots[i].value.Load()
		case 0:
			return nil
		}
	}
}

// Set makes v, which must not be nil, the calling goroutine's value until
// Delete.
func (l *Local[V]) Set(v *V) {
	checkOnce.Do(check)
	l.mu.Lock()
	defer l.mu.Unlock()
	t := l.table.Load()
	if t == nil || 4*(l.used+1) > 3*len(t.slots) {
		t = l.resize(t, l.live+1)
	}
	l.put(t, id(), v)
}

// Delete removes the calling goroutine's value.
func (l *Local[V]) Delete() {
	l.mu.Lock()
	defer l.mu.Unlock()
	t := l.table.Load()
	if t == nil {
		return
	}

	id := id()
	for i := t.home(id); ; i = t.next(i) {
		switch t.slots[i].id.Load() {
		case 0:
			return
		case id:
			if t.slots[i].value.Swap(nil) == nil {
				return
			}

			l.live--
			switch {
			case l.live == 0:
				l.table.Store(nil)
				l.used = 0
			case len(t.slots) > minSlots && 8*l.live < len(t.slots):
				l.resize(t, l.live)
			}
			return
		}
	}
}

// Len returns how many goroutines have a value.
func (l *Local[V]) Len() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.live
}

// resize replaces old by a table that is at most a quarter full with n values.
func (l *Local[V]) resize(old *table[V], n int) *table[V] {
	log := bits.Len(uint(max(4*n, minSlots) - 1))
	t := &table[V]{shift: uint(64 - log), slots: make([]slot[V], 1<<log)}
	l.live, l.used = 0, 0
	if old != nil {
		for i := range old.slots {
			if v := old.slots[i].value.Load(); v != nil {
				l.put(t, old.slots[i].id.Load(), v)
			}
		}
	}
	l.table.Store(t)
	return t
}

// put enters v under id, which t may hold already.
func (l *Local[V]) put(t *table[V], id int64, v *V) {
	free := -1
	for i := t.home(id); ; i = t.next(i) {
		s := &t.slots[i]

		switch has := s.id.Load(); {
		case has == id:
			if s.value.Swap(v) == nil {
				l.live++
			}
			return
		// The end of the search: the id is new.
		case has == 0:
			if free < 0 {
				free = i
				l.used++
			}
			t.slots[free].id.Store(id)
			t.slots[free].value.Store(v)
			l.live++
			return
		// A slot that was freed, to be used if the id is new.
		case free < 0 && s.value.Load() == nil:
			free = i
		}
	}
}

// home is the first slot to search for id: multiplicative hashing (Knuth, The
// Art of Computer Programming, vol. 3, 6.4), since ids are often consecutive.
func (t *table[V]) home(id int64) int {
	return int(uint64(id) * 0x9E3779B97F4A7C15 >> t.shift)
}

func (t *table[V]) next(i int) int { return (i + 1) & (len(t.slots) - 1) }
