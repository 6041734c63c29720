package measure

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/ccl/config"
	"github.com/goccl/goccl/dist"
	"github.com/goccl/goccl/transport"
)

// quick makes two calls of everything.
var quick = Budget{Time: 1, Warmup: 1, MinCalls: 2, MaxCalls: 2}

const cfg = `version: 1
algorithms:
  direct: {module: direct}
  ring: {module: ring}
  tree: {module: tree}
  grid: {module: grid}
  broken: {module: broken}
rules: [{ranks: "3-", algorithm: ring}, {algorithm: direct}]
`

func job(t *testing.T, entries ...string) *Setup {
	c, err := config.Parse("ccl.yaml", []byte(cfg))
	require.NoError(t, err)
	return &Setup{Config: c, Entries: entries, Budget: quick}
}

// during is called by the kernels of broken, if it is set.
var during atomic.Pointer[func()]

// broken computes correct results, except one element on rank 1.
var broken = &ccl.Algorithm{
	Name:    "broken",
	Doc:     "for tests",
	Kernels: map[ccl.Collective]*ccl.Kernel{},
}

func init() {
	ring := ccl.DefaultRegistry()["ring"]
	for coll, k := range ring.Kernels {
		spoiled := *k
		spoiled.Run = func(c *ccl.Call) error {
			if f := during.Load(); f != nil {
				(*f)()
			}
			if err := k.Run(c); err != nil || c.Rank() != 1 {
				return err
			}
			c.Out().Bytes()[0] ^= 1
			return nil
		}
		broken.Kernels[coll] = &spoiled
	}
	broken.Params = ring.Params
	ccl.Register(broken)
}

// names returns the names of the values in ccl.yaml.
func names[T fmt.Stringer](all []T) (names []string) {
	for _, v := range all {
		names = append(names, v.String())
	}
	return names
}

// Every collective is measured beside the yardsticks with every type and operation, in and
// out of place, and its results are correct. Undefined reductions are rejected.
func TestMeasure(t *testing.T) {
	kinds := Plan{
		Collectives: []string{"all_reduce"},
		DTypes:      names(ccl.DTypes()),
		Ops:         names(ccl.Ops()),
		Ranks:       []int{3},
		Bytes:       []int{5000},
		InPlace:     []bool{true},
		Consume:     true,
	}
	calls := Plan{
		Collectives: append(names(ccl.Collectives()), barrier),
		DTypes:      []string{"bfloat16", "complex64"},
		Ops:         []string{"sum", "avg", "max"},
		Ranks:       []int{3},
		Bytes:       []int{5000},
		InPlace:     []bool{true},
	}
	places := calls
	places.Ranks, places.DTypes, places.Ops = []int{1, 2, 3, 7}, []string{"float32"}, []string{"sum"}
	places.Bytes, places.InPlace = []int{8, 5000}, []bool{true, false}
	j := job(t, "direct", "ring", "tree")
	j.Budget = Budget{Time: 1, MinCalls: 1, MaxCalls: 1}
	for _, c := range slices.Concat(kinds.Cases(), calls.Cases(), places.Cases()) {
		if c.collective().Traits().Rooted {
			c.Root = c.Ranks - 1
		}
		r, err := j.Measure(t.Context(), c)
		require.NoError(t, err, "%+v", c)
		if c.Op != "" && !defined(t, c) {
			require.Len(t, r.Rows, 3)
			for _, row := range r.Rows {
				require.Contains(t, row.Refused, "not implemented", "%+v", c)
			}
			continue
		}
		require.Empty(t, r.Algorithms()[0].Refused, "direct can do everything: %+v", c)
		for _, row := range r.Rows {
			require.Zero(t, row.Errors, "%+v: %+v", c, row)
			require.True(t, row.Calls == 1 || row.Refused != "" || row.Entry == CoreToCore, "%+v: %+v", c, row)
		}
	}
}

// defined reports whether the reduction of c exists, independently of the code under test.
func defined(t *testing.T, c Case) bool {
	switch isBool := c.DType == "bool"; c.Op {
	case "band", "bor", "bxor", "land", "lor", "lxor":
		return isBool || strings.Contains(c.DType, "int")
	case "min", "max":
		return !strings.HasPrefix(c.DType, "complex")
	case "avg":
		return !isBool && !strings.HasSuffix(c.Collective, "scan")
	case "sum", "product":
		return !isBool
	}
	t.Fatalf("operation %s", c.Op)
	return false
}

// Every subject has a row, with times, bandwidths and ratios.
func TestRows(t *testing.T) {
	p := Plan{
		Collectives: []string{"all_reduce", "all_gather", "broadcast", barrier},
		DTypes:      []string{"float32"},
		Ops:         []string{"sum"},
		Ranks:       []int{1, 2, 3},
		Bytes:       []int{8, 5000},
		InPlace:     []bool{true, false},
	}
	j := job(t, "direct", "ring", Auto)
	j.Budget = Budget{Time: 1, MinCalls: 1, MaxCalls: 1}
	for _, c := range p.Cases() {
		r, err := j.Measure(t.Context(), c)
		require.NoError(t, err, "%+v", c)
		require.Equal(t, c, r.Case)
		require.Equal(t, "local", r.Transport)
		own, peer := r.Yardstick(OwnCopy), r.Yardstick(PeerCopy)
		algorithms := r.Algorithms()
		if c.Collective == barrier {
			require.Len(t, algorithms, 1)
			require.Equal(t, [3]float64{}, [3]float64{algorithms[0].BusBW, algorithms[0].XOwnCopy, algorithms[0].XPeerCopy})
		} else {
			require.Len(t, algorithms, 3)
			require.Equal(t, map[int]string{1: "", 2: "direct", 3: "ring"}[c.Ranks], algorithms[2].Ran)
			require.Equal(t, 1, own.Calls)
			require.Equal(t, 1, peer.Calls)
			require.Equal(t, 1, r.Yardstick(Barrier).Calls)
			require.Equal(t, 1.0, own.XOwnCopy)
			require.Equal(t, 1.0, peer.XPeerCopy)
		}
		for _, row := range r.Rows {
			require.Zero(t, row.Errors, "%+v: %+v", c, row)
			if row.Entry == CoreToCore {
				continue // may have given up
			}
			require.Equal(t, 1, row.Calls, "%+v: %+v", c, row)
			require.True(t, 0 < row.Min && row.Min <= row.P50 && row.P50 <= row.P90 && row.P90 <= row.P99 && row.P50 <= row.Whole, "%+v", row)
			if row.Library == Library && c.Bytes > 0 {
				require.InEpsilon(t, row.P50/own.P50, row.XOwnCopy, 1e-3)
				require.InEpsilon(t, row.P50/peer.P50, row.XPeerCopy, 1e-3)
				require.Equal(t, row.XOwnCopy, row.XFloor)
				require.InEpsilon(t, float64(c.Total())/row.P50/1e3, row.AlgBW, 1e-3)
			}
		}
	}
}

// Wrong results are counted: here one element per call, warm-up included.
func TestWrongResults(t *testing.T) {
	p := Plan{
		Collectives: []string{"all_reduce", "all_gather", "broadcast"},
		DTypes:      []string{"float32", "uint8"},
		Ops:         []string{"sum", "max"},
		Ranks:       []int{2, 3},
		Bytes:       []int{4, 4000},
		InPlace:     []bool{true, false},
	}
	j := job(t, "broken", "direct")
	for _, c := range p.Cases() {
		r, err := j.Measure(t.Context(), c)
		require.NoError(t, err)
		for _, row := range r.Rows {
			want := 0
			if row.Entry == "broken" {
				want = 3
			}
			require.Equal(t, want, row.Errors, "%+v: %+v", c, row)
		}
	}
}

// Copies of wrong data, or of too little, would make the ratios worthless. The results of the
// copies and of the floor have the length that the collective implies, they are verified, and
// one wrong element is found.
func TestYardsticksAreVerified(t *testing.T) {
	for _, m := range []struct {
		collective, op string
		copied         [3]int // elements on each of three ranks; rank 1 is the root
		floor          [3]int // zero: the own copy is the floor
	}{
		{"all_reduce", "sum", [3]int{300, 300, 300}, [3]int{}},
		{"scan", "sum", [3]int{300, 300, 300}, [3]int{}},
		{"exscan", "sum", [3]int{300, 300, 300}, [3]int{}},
		{"all_gather", "", [3]int{900, 900, 900}, [3]int{}},
		{"broadcast", "", [3]int{300, 300, 300}, [3]int{}},
		{"all_to_all", "", [3]int{300, 300, 300}, [3]int{}},
		{"reduce", "sum", [3]int{300, 300, 300}, [3]int{100, 100, 100}},
		{"reduce_scatter", "sum", [3]int{300, 300, 300}, [3]int{100, 100, 100}},
		{"gather", "", [3]int{300, 900, 300}, [3]int{300, 300, 300}},
		{"scatter", "", [3]int{100, 300, 100}, [3]int{100, 100, 100}},
	} {
		want := map[string][3]int{OwnCopy: m.copied, PeerCopy: m.copied}
		if m.floor != [3]int{} {
			want[Floor] = m.floor
		}
		c := Case{Collective: m.collective, DType: "int32", Op: m.op, Ranks: 3, Bytes: 1200, Root: 1, Buckets: 2}
		got := map[string][3]int{}
		var mu sync.Mutex
		require.NoError(t, dist.Spawn(func(context.Context, int) error {
			if err := dist.InitProcessGroup("ccl", dist.WithConfig(job(t).Config)); err != nil {
				return err
			}
			group, err := dist.Default()
			if err != nil {
				return err
			}
			b, err := newBench(c, quick, integers[int32](), group.Communicator(), func(b *bench[int32]) error { return addCollective(b, []chosen{{entry: "direct"}}) })
			if err != nil {
				return err
			}
			b.bucket, b.buffers = 1, b.private[1]
			fill(b.send, b.inputs[b.rank], 5)
			for _, k := range b.subjects {
				if k.library != Yardstick || k.countWrong == nil {
					continue
				}
				clear(b.room)
				if k.show != nil {
					k.show(4)
				}
				if err := errors.Join(b.awaitAll(), k.run()); err != nil {
					return err
				}
				result := k.result()
				before := k.countWrong(5)
				result[len(result)-1]++
				if after := k.countWrong(5); before != 0 || after != 1 {
					return fmt.Errorf("%s, %s: %d elements are wrong, and then %d", m.collective, k.name, before, after)
				}
				mu.Lock()
				lengths := got[k.name]
				lengths[b.rank] = len(result)
				got[k.name] = lengths
				mu.Unlock()
			}
			return dist.DestroyProcessGroup()
		}, dist.WithRanks(3)), m.collective)
		require.Equal(t, want, got, m.collective)
	}
}

// An entry that does not support a case has a row with the reason; an unknown name is an error.
func TestRefusals(t *testing.T) {
	c := Case{Collective: "all_reduce", DType: "float32", Op: "sum", Ranks: 2, Bytes: 64, InPlace: true}
	r, err := job(t, "ring", "grid").Measure(t.Context(), c)
	require.NoError(t, err)
	rows := r.Algorithms()
	require.Equal(t, 2, rows[0].Calls)
	require.Zero(t, rows[1].Calls)
	require.Contains(t, rows[1].Refused, "torus_2d")

	alone := job(t, "ring")
	alone.Entries = []string{"ring", "grid"}
	c.Ranks = 3
	r, err = alone.Measure(t.Context(), c)
	require.NoError(t, err)
	require.NotEmpty(t, r.Algorithms()[1].Refused)

	// Another configuration may have the entry.
	r, err = job(t, "rnig", "ring").Measure(t.Context(), c)
	require.NoError(t, err)
	require.Contains(t, r.Algorithms()[0].Refused, "has no entry rnig; entries: direct, ring")
	require.Equal(t, 2, r.Algorithms()[1].Calls)
	r, err = job(t, "rnig").Measure(t.Context(), c)
	require.NoError(t, err)
	require.Contains(t, r.Algorithms()[0].Refused, "rnig")
	shm := job(t, "ring")
	shm.Transport = "shm"
	_, err = shm.Measure(t.Context(), c)
	var missing *transport.MissingConfigurationError
	require.ErrorAs(t, err, &missing)
}

// If no entries are given, the entry that the configuration chooses is measured.
func TestConfiguredEntry(t *testing.T) {
	c := Case{Collective: "broadcast", DType: "float32", Ranks: 3, Bytes: 64, InPlace: true}
	r, err := job(t).Measure(t.Context(), c)
	require.NoError(t, err)
	require.Equal(t, []string{Auto, "ring"}, []string{r.Algorithms()[0].Entry, r.Algorithms()[0].Ran})

	j := job(t)
	j.Config, err = j.Config.WithEnvironment(func(name string) string {
		return map[string]string{"GOCCL_ALGORITHM": "tree"}[name]
	})
	require.NoError(t, err)
	r, err = j.Measure(t.Context(), c)
	require.NoError(t, err)
	require.Equal(t, "tree", r.Algorithms()[0].Entry)
}

// A measurement that would take an hour ends when its context does.
func TestInterrupt(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	var calls atomic.Int64
	f := func() {
		if calls.Add(1) == 20 {
			cancel()
		}
	}
	during.Store(&f)
	defer during.Store(nil)
	j := job(t, "broken")
	j.Budget = Budget{Time: time.Hour, Warmup: 1, MinCalls: 1, MaxCalls: 1 << 30}
	_, err := j.Measure(ctx, Case{Collective: "all_reduce", DType: "float32", Op: "sum", Ranks: 2, Bytes: 64, InPlace: true})
	require.ErrorIs(t, err, context.Canceled)
}

// Measure returns the error of a failed call.
func TestFailure(t *testing.T) {
	f := func() { panic("for tests") }
	during.Store(&f)
	defer during.Store(nil)
	_, err := job(t, "direct", "broken").Measure(t.Context(), Case{Collective: "all_reduce", DType: "float32", Op: "sum", Ranks: 2, Bytes: 64, InPlace: true})
	var panicked *ccl.KernelPanicError
	require.ErrorAs(t, err, &panicked)
	require.True(t, strings.HasPrefix(err.Error(), "all_reduce of float32 by sum, in place, 2 ranks of 64: "), err.Error())
}

func TestThisMachine(t *testing.T) {
	m := ThisMachine()
	require.Equal(t, runtime.NumCPU(), m.Cores)
	require.Contains(t, m.String(), runtime.Version())
	require.NotContains(t, m.String(), "; ;")
	require.Positive(t, m.ClockNS)
}
