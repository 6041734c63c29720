package goroutine

import (
	"context"
	"runtime/pprof"
	"sync"
	"testing"

	"github.com/petermattis/goid"
	"github.com/stretchr/testify/require"
)

func TestIDsOfStackAndGoidAgree(t *testing.T) {
	var wg sync.WaitGroup
	ids := make([][2]int64, 1000)
	for i := range ids {
		wg.Go(func() { ids[i] = [2]int64{goid.Get(), stackID()} })
	}
	wg.Wait()
	seen := map[int64]bool{}
	for _, pair := range ids {
		require.Equal(t, pair[0], pair[1])
		require.Positive(t, pair[0])
		require.False(t, seen[pair[0]], "goroutine id %d was used twice", pair[0])
		seen[pair[0]] = true
	}
}

// Everything works as before with the parser instead of goid.
func TestFallbackToStack(t *testing.T) {
	checkOnce.Do(check)
	require.False(t, fromStack, "goid does not know this version of Go: update it")
	fromStack = true
	defer func() { fromStack = false }()

	var l Local[int]
	one := 1
	l.Set(&one)
	require.Same(t, &one, l.Get())
	l.Delete()
	require.Nil(t, l.Get())
}

func TestLocalIsPerGoroutine(t *testing.T) {
	var l Local[int]
	require.Nil(t, l.Get())
	l.Delete() // without a value

	one, two := 1, 2
	l.Set(&one)
	require.Same(t, &one, l.Get())
	var unset, set *int
	var wg sync.WaitGroup
	wg.Go(func() { unset = l.Get() })
	wg.Go(func() {
		l.Set(&two)
		defer l.Delete()
		set = l.Get()
	})
	wg.Wait()
	require.Nil(t, unset, "a child has no value of its own")
	require.Same(t, &two, set)
	require.Same(t, &one, l.Get())
	require.Equal(t, 1, l.Len())
	l.Set(&two)
	require.Same(t, &two, l.Get(), "Set replaces")
	require.Equal(t, 1, l.Len())

	l.Delete()
	l.Delete() // a second time
	require.Nil(t, l.Get())
	require.Zero(t, l.Len())
	require.Nil(t, l.table.Load())
}

// A map is the oracle: many ids are found again at every fill, also when deleted ids leave
// gaps in the chains.
func TestTableAgainstMap(t *testing.T) {
	var l Local[int64]
	want := map[int64]*int64{}
	find := func(id int64) *int64 {
		tb := l.table.Load()
		for i := tb.home(id); ; i = tb.next(i) {
			switch tb.slots[i].id.Load() {
			case id:
				return tb.slots[i].value.Load()
			case 0:
				return nil
			}
		}
	}
	l.resize(nil, 1)
	for id := int64(1); id <= 5000; id++ {
		v := id
		if tb := l.table.Load(); 4*(l.used+1) > 3*len(tb.slots) {
			l.resize(tb, l.live+1)
		}
		l.put(l.table.Load(), id, &v)
		want[id] = &v
		if id%3 == 0 { // empty another goroutine's slot, as its Delete does
			gone := id/2 + 1
			if want[gone] != nil {
				tb := l.table.Load()
				for i := range tb.slots {
					if tb.slots[i].id.Load() == gone {
						tb.slots[i].value.Store(nil)
						l.live--
					}
				}
				delete(want, gone)
			}
		}
		if id%97 == 0 {
			require.Equal(t, len(want), l.live)
			for k := int64(1); k <= id; k++ {
				require.Same(t, want[k], find(k), "id %d of %d", k, id)
			}
		}
	}
	require.Nil(t, find(1<<40))
}

// A hundred thousand goroutines come and go: the table's size follows the number that
// live at once, and the table is removed with the last of them.
func TestNothingLeaks(t *testing.T) {
	var l Local[int]
	const total, atOnce = 100_000, 500
	own := 7
	l.Set(&own)
	var wg sync.WaitGroup
	tokens := make(chan struct{}, atOnce)
	largest := 0
	for range total {
		tokens <- struct{}{}
		wg.Go(func() {
			defer func() { <-tokens }()
			v := 0
			l.Set(&v)
			defer l.Delete()
			if l.Get() != &v {
				t.Error("another goroutine's value")
			}
		})
		largest = max(largest, len(l.table.Load().slots))
	}
	wg.Wait()
	require.Equal(t, 1, l.Len())
	require.Same(t, &own, l.Get())
	require.LessOrEqual(t, largest, 8*(atOnce+1))
	require.LessOrEqual(t, len(l.table.Load().slots), minSlots)
	l.Delete()
	require.Nil(t, l.table.Load())
}

func TestTableShrinks(t *testing.T) {
	var l Local[int]
	const n = 1000
	var wg sync.WaitGroup
	var set sync.WaitGroup
	end := make(chan struct{})
	set.Add(n)
	for range n {
		wg.Go(func() {
			v := 0
			l.Set(&v)
			set.Done()
			<-end
			l.Delete()
		})
	}
	own := 1
	l.Set(&own)
	set.Wait()
	require.Equal(t, n+1, l.Len())
	require.GreaterOrEqual(t, len(l.table.Load().slots), n+1)
	close(end)
	wg.Wait()
	require.LessOrEqual(t, len(l.table.Load().slots), minSlots)
	require.Same(t, &own, l.Get())
}

func TestLabelsAreInherited(t *testing.T) {
	defer pprof.SetGoroutineLabels(context.Background())
	require.Equal(t, Label{}, CurrentLabel())
	pprof.Do(context.Background(), pprof.Labels("a", "1"), func(ctx context.Context) {
		mine := CurrentLabel()
		require.NotEqual(t, Label{}, mine)
		child := make(chan Label)
		go func() { child <- CurrentLabel() }()
		require.Equal(t, mine, <-child)
		pprof.Do(ctx, pprof.Labels("a", "1"), func(context.Context) {
			require.NotEqual(t, mine, CurrentLabel(), "equal text is not the same set")
		})
		require.Equal(t, mine, CurrentLabel())
	})
	require.Equal(t, Label{}, CurrentLabel())
}

func BenchmarkGet(b *testing.B) {
	var l Local[int]
	v := 1
	l.Set(&v)
	defer l.Delete()
	for b.Loop() {
		if l.Get() != &v {
			b.Fatal("lost")
		}
	}
}

func BenchmarkSetDelete(b *testing.B) {
	var l Local[int]
	v := 1
	for b.Loop() {
		l.Set(&v)
		l.Delete()
	}
}
