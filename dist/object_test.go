package dist_test

import (
	"context"
	"encoding/gob"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/dist"
	"github.com/goccl/goccl/test/golden"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// checkpoint resembles objects of programs: a length that other ranks do not know, and
// pointers.
type checkpoint struct {
	Step    int
	Names   []string
	Weights map[string][]float64
	Next    *checkpoint
}

func checkpointOf(rank int) *checkpoint {
	if rank == 0 {
		return nil
	}
	return &checkpoint{
		Step:    rank,
		Names:   strings.Split(strings.Repeat("layer ", 100*rank), " "),
		Weights: map[string][]float64{"w": make([]float64, rank)},
		Next:    checkpointOf(rank - 1),
	}
}

// Receivers need to know only the type.
func TestObjects(t *testing.T) {
	for _, ranks := range []int{1, 2, 3, 4, 5, 7} {
		var all []*checkpoint
		for r := range ranks {
			all = append(all, checkpointOf(r))
		}
		err := spawn(t, initialised(func(ctx context.Context, rank int) error {
			mine := checkpointOf(rank)
			got, err := dist.AllGatherObject(mine)
			if err != nil {
				return err
			}
			assert.Equal(t, all, got)

			var forAll, fromAll []*checkpoint
			for r := range ranks {
				forAll = append(forAll, &checkpoint{Step: 100*rank + r, Next: checkpointOf(r)}) // of different lengths
				fromAll = append(fromAll, &checkpoint{Step: 100*r + rank, Next: checkpointOf(rank)})
			}
			if got, err = dist.AllToAllObject(forAll); err != nil {
				return err
			}
			assert.Equal(t, fromAll, got)

			for root := range ranks {
				// The others' values are replaced, not merged.
				obj := &checkpoint{Step: 4711, Weights: map[string][]float64{"stale": nil}}
				if rank == root {
					obj = mine
				}
				if err := dist.BroadcastObject(&obj, root); err != nil {
					return err
				}
				assert.Equal(t, all[root], obj)
				if rank == root {
					assert.Same(t, mine, obj, "the sender's stays")
				}

				got, err := dist.GatherObject(mine, root)
				if err != nil {
					return err
				}
				if rank == root {
					assert.Equal(t, all, got)
				} else {
					assert.Nil(t, got)
				}

				var objs []*checkpoint
				if rank == root {
					objs = all
				}
				one, err := dist.ScatterObject(objs, root)
				if err != nil {
					return err
				}
				assert.Equal(t, mine, one)
			}
			return nil
		}), dist.WithRanks(ranks))
		require.NoError(t, err)
	}
}

type shape interface{ area() float64 }

type square struct{ Side float64 }

func (s square) area() float64 { return s.Side * s.Side }

func init() { gob.Register(square{}) }

// Interfaces are sent with or without a value, and types need only be compatible.
func TestTypesOfObjects(t *testing.T) {
	err := spawn(t, initialised(func(ctx context.Context, rank int) error {
		var s shape
		if rank == 1 {
			s = square{3}
		}
		shapes, err := dist.AllGatherObject(s)
		if err != nil {
			return err
		}
		assert.Equal(t, []shape{nil, square{3}}, shapes)

		if rank == 0 {
			return dist.BroadcastObject(&struct{ Side, Extra float32 }{2, 7}, 0)
		}
		var q square
		err = dist.BroadcastObject(&q, 0)
		assert.Equal(t, square{2}, q)
		return err
	}), dist.WithRanks(2))
	require.NoError(t, err)
}

// settings has what gob by itself leaves out.
type settings struct {
	Best  *int
	Names []string
	Rows  map[string][]float64
	seen  int
}

// Every call of objects carries pointers to zero and empty lists, and refuses on all ranks an object that
// would lose a field on its way.
func TestNothingOfAnObjectIsLost(t *testing.T) {
	calls := map[string]func(rank int, s settings) (settings, error){
		"broadcast": func(rank int, s settings) (settings, error) {
			if rank == 0 {
				s = settings{}
			}
			err := dist.BroadcastObject(&s, 1)
			return s, err
		},
		"all-gather": func(_ int, s settings) (settings, error) {
			all, err := dist.AllGatherObject(s)
			return append(all, settings{}, s)[1], err
		},
		"gather": func(rank int, s settings) (settings, error) {
			all, err := dist.GatherObject(s, 0)
			return append(all, s, s)[1], err
		},
		"scatter": func(rank int, s settings) (settings, error) {
			var objs []settings
			if rank == 1 {
				objs = []settings{s, s}
			}
			return dist.ScatterObject(objs, 1)
		},
		"send": func(rank int, s settings) (settings, error) {
			if rank == 1 {
				return s, dist.SendObject(s, 0, 0)
			}
			if s.seen != 0 {
				return s, errors.New("seen is not exported, and there is nothing to receive")
			}
			got, _, err := dist.RecvObject[settings](1, 0)
			return got, err
		},
	}
	zero := 0
	for name, call := range calls {
		t.Run(name, func(t *testing.T) {
			err := spawn(t, initialised(func(_ context.Context, rank int) error {
				want := settings{Best: &zero, Names: []string{}, Rows: map[string][]float64{"x": {}, "y": nil}}
				got, err := call(rank, want)
				assert.NoError(t, err)
				assert.Equal(t, want, got)

				want.seen = 7
				_, err = call(rank, want)
				assert.ErrorContains(t, err, "seen is not exported")
				return dist.Barrier()
			}), dist.WithRanks(2))
			require.NoError(t, err)
		})
	}
}

var errSecret = errors.New("this is nobody's business")

// stubborn is an object that cannot be encoded.
type stubborn []error

func (s stubborn) GobEncode() ([]byte, error) {
	if s[0] == nil {
		panic("no!")
	}
	return nil, s[0]
}

func (s *stubborn) GobDecode([]byte) error { return nil }

// The mistake of one rank is an error on all, which names it; the group is intact.
func TestRefusedObjects(t *testing.T) {
	texts := golden.Errors(t)
	const broken = 1
	for _, refusal := range []struct {
		name string
		call func(rank int) error
		text string
		is   error
	}{
		{
			name: "an object that will not be encoded",
			call: func(rank int) error {
				var obj any = 1
				if rank == broken {
					obj = stubborn{errSecret}
				}
				_, err := dist.AllGatherObject(obj)
				return err
			},
			text: "dist: all_gather_object: rank 1: encoding a interface {}: (interface {}) is a dist_test.stubborn in an interface, and gob does not know that type: pass such a value to gob.Register",
		}, {
			name: "a method that fails",
			call: func(rank int) error { return dist.BroadcastObject(&stubborn{errSecret}, broken) },
			text: "dist: broadcast_object: rank 1: encoding a dist_test.stubborn: this is nobody's business",
			is:   errSecret,
		}, {
			name: "a method that panics",
			call: func(rank int) error { return dist.BroadcastObject(&stubborn{nil}, broken) },
			text: "dist: broadcast_object: rank 1: encoding a dist_test.stubborn panicked: no!",
		}, {
			name: "a type that cannot be sent",
			call: func(rank int) error { return dist.BroadcastObject(new(func()), broken) },
			text: "dist: broadcast_object: rank 1: encoding a func(): (func()) holds a func(), and gob cannot write that",
		}, {
			name: "a long error",
			call: func(rank int) error {
				return dist.BroadcastObject(&stubborn{errors.New(strings.Repeat("blah ", 300))}, broken)
			},
			text: "dist: broadcast_object: rank 1: encoding a dist_test.stubborn: blah",
		}, {
			name: "nil to store to",
			call: func(rank int) error {
				obj := new(int)
				if rank == broken {
					obj = nil
				}
				return dist.BroadcastObject(obj, 0)
			},
			text: "dist: broadcast_object: rank 1: the pointer to the object is nil",
		}, {
			name: "a root that is none",
			call: func(rank int) error {
				dst := 0
				if rank == broken {
					dst = 3
				}
				_, err := dist.GatherObject(rank, dst)
				return err
			},
			text: "dist: gather_object: rank 1: root 3 is not a rank of a group of 3 (0 to 2)",
		}, {
			name: "too few objects",
			call: func(rank int) error {
				var objs []int
				if rank == broken {
					objs = []int{1, 2}
				}
				_, err := dist.ScatterObject(objs, broken)
				return err
			},
			text: "dist: scatter_object: rank 1: objs has 2 elements, want 3",
		}, {
			name: "objects at the wrong side",
			call: func(rank int) error {
				var objs []int
				if rank != 2 {
					objs = []int{1, 2, 3}
				}
				_, err := dist.ScatterObject(objs, 0)
				return err
			},
			text: "dist: scatter_object: rank 1: objs has 3 elements, want 0",
		}, {
			name: "too few objects for all",
			call: func(rank int) error {
				objs := []int{1, 2, 3}
				if rank == broken {
					objs = objs[:2]
				}
				_, err := dist.AllToAllObject(objs)
				return err
			},
			text: "dist: all_to_all_object: rank 1: objs has 2 elements, want 3",
		}, {
			name: "an object for another rank that cannot be encoded",
			call: func(rank int) error {
				objs := make([]any, 3)
				if rank == broken {
					objs[2] = func() {}
				}
				_, err := dist.AllToAllObject(objs)
				return err
			},
			text: "dist: all_to_all_object: rank 1: the object for rank 2: ",
		}, {
			name: "one object that is too long",
			call: func(rank int) error {
				var objs []string
				if rank == broken {
					objs = []string{"", strings.Repeat("x", 2000), "y"}
				}
				_, err := dist.ScatterObject(objs, broken, dist.WithObjectLimit(1<<20), dist.WithObjectLimit(1000+rank))
				return err
			},
			text: "bytes, but the limit is 1000: see dist.WithObjectLimit",
		}, {
			name: "a limit that is none",
			call: func(rank int) error {
				limit := 100
				if rank == broken {
					limit = -1
				}
				_, err := dist.AllGatherObject(rank, dist.WithObjectLimit(limit))
				return err
			},
			text: "dist: all_gather_object: rank 1: the limit of an object is -1 bytes: give dist.WithObjectLimit a positive number",
		},
	} {
		t.Run(refusal.name, func(t *testing.T) {
			err := spawn(t, initialised(func(ctx context.Context, rank int) error {
				err := refusal.call(rank)
				if refusal.name != "one object that is too long" { // gob numbers types, which are more after other tests
					texts.Add(refusal.name, err)
				}
				assert.ErrorContains(t, err, refusal.text)
				assert.Less(t, len(err.Error()), 2000)
				var object *dist.ObjectError
				if assert.ErrorAs(t, err, &object) {
					assert.Equal(t, broken, object.Rank)
				}
				if refusal.is != nil {
					assert.Equal(t, rank == broken, errors.Is(err, refusal.is), "the cause is on its rank")
				}
				all, err := dist.AllGatherObject(rank)
				assert.Equal(t, []int{0, 1, 2}, all, "the group is as it was")
				return err
			}), dist.WithRanks(3))
			require.NoError(t, err)
		})
	}
}

// The rank whose argument was rejected comes first among the errors of Spawn.
func TestRankWithoutObjectIsTheRootCause(t *testing.T) {
	err := spawn(t, initialised(func(ctx context.Context, rank int) error {
		return dist.BroadcastObject(&stubborn{errSecret}, 2)
	}), dist.WithRanks(3))
	require.ErrorIs(t, err, errSecret)
	errs := err.(interface{ Unwrap() []error }).Unwrap()
	require.Equal(t, 2, errs[0].(*dist.RankError).Rank)
}

// A rank that cannot decode an object gets an error; the group is intact.
func TestObjectOfAnotherType(t *testing.T) {
	err := spawn(t, initialised(func(ctx context.Context, rank int) error {
		if rank == 0 {
			text := "seven"
			if err := dist.BroadcastObject(&text, 0); err != nil {
				return err
			}
			return dist.Barrier()
		}
		number := 7
		err := dist.BroadcastObject(&number, 0)
		assert.ErrorContains(t, err, "dist: broadcast_object: the object of rank 0 cannot be decoded to a int: all ranks need the same type")
		assert.Equal(t, 7, number)
		return dist.Barrier()
	}), dist.WithRanks(2))
	require.NoError(t, err)
}

// A peer that announces a huge length does not make others allocate it.
func TestObjectsOfALiar(t *testing.T) {
	for _, header := range [][]int{{0, 1 << 50, 1 << 50}, {0, 1 << 50, -1}, {0, 7, -1 << 63}, {0, -1 << 63, 7}, {7, 0, 0}} {
		err := spawn(t, initialised(func(ctx context.Context, rank int) error {
			if rank == 0 {
				group, err := dist.Default()
				if err != nil {
					return err
				}
				c := group.Communicator()
				if err := ccl.AllGather(ctx, c, header, make([]int, 6)); err != nil {
					return err
				}
				if header[0] > 0 {
					return ccl.AllGatherV(ctx, c, make([]byte, header[0]), make([]byte, header[0]), []int{header[0], 0}, nil)
				}
				return nil
			}
			var object *dist.ObjectError
			_, err := dist.AllGatherObject(rank)
			assert.ErrorAs(t, err, &object, "%v", header)
			return nil
		}), dist.WithRanks(2))
		require.NoError(t, err)
	}
}

// An object to one rank, from any rank; the errors of an object stay with its sender.
func TestSendObject(t *testing.T) {
	err := spawn(t, initialised(func(ctx context.Context, rank int) error {
		if rank > 0 {
			if err := dist.SendObject(func() {}, 0, 3); !strings.Contains(err.Error(), "send_object") {
				return err
			}
			if err := dist.SendObject(checkpointOf(rank), 0, 3, dist.WithObjectLimit(1)); !strings.Contains(err.Error(), "the limit is 1:") {
				return err
			}
			return dist.SendObject(checkpointOf(rank), 0, 3)
		}
		seen := make([]bool, 3)
		for range 2 {
			got, source, err := dist.RecvObject[*checkpoint](dist.AnySource, 3)
			if err != nil {
				return err
			}
			assert.Equal(t, checkpointOf(source), got)
			seen[source] = true
		}
		assert.Equal(t, []bool{false, true, true}, seen)
		return nil
	}), dist.WithRanks(3))
	require.NoError(t, err)
}

// Several goroutines of two ranks send and receive objects of one tag at once: each object
// arrives whole, and once.
func TestObjectsOfOneTagAtOnce(t *testing.T) {
	const goroutines, each = 4, 50
	err := spawn(t, initialised(func(ctx context.Context, rank int) error {
		var mu sync.Mutex
		seen := map[string]int{}
		errs := make(chan error, goroutines)
		for g := range goroutines {
			dist.Go(func() {
				errs <- func() error {
					for i := range each {
						if rank == 1 {
							if err := dist.SendObject(fmt.Sprint(g, " ", strings.Repeat("x", 17*i), i), 0, 3); err != nil {
								return err
							}
							continue
						}
						text, _, err := dist.RecvObject[string](1, 3)
						if err != nil {
							return err
						}
						mu.Lock()
						seen[text]++
						mu.Unlock()
					}
					return nil
				}()
			})
		}
		var err error
		for range goroutines {
			err = errors.Join(err, <-errs)
		}
		if rank == 0 && err == nil {
			assert.Len(t, seen, goroutines*each)
		}
		return err
	}), dist.WithRanks(2))
	require.NoError(t, err)
}

// An object that exceeds its receiver's limit stays for the next receive.
func TestObjectThatIsTooLong(t *testing.T) {
	err := spawn(t, initialised(func(ctx context.Context, rank int) error {
		if rank == 1 {
			return dist.SendObject(strings.Repeat("x", 1000), 0, 3)
		}
		var differs *dist.MismatchError
		_, _, err := dist.RecvObject[string](1, 3, dist.WithObjectLimit(1000))
		require.ErrorAs(t, err, &differs)
		require.ErrorContains(t, err, "expected at most 1000 on rank 0 (the limit is 1000 bytes: see dist.WithObjectLimit)")
		got, _, err := dist.RecvObject[string](1, 3)
		require.Equal(t, strings.Repeat("x", 1000), got)
		return err
	}), dist.WithRanks(2))
	require.NoError(t, err)
}

// The error of a call of objects names one package, and so does that of a message.
func TestObjectErrorsNameOnePackage(t *testing.T) {
	for name, call := range map[string]func() error{
		"all_gather_object": func() error { _, err := dist.AllGatherObject(1); return err },
		"send_object":       func() error { return dist.SendObject(make([]byte, 1<<20), 1, 0) },
		"recv_object":       func() error { _, _, err := dist.RecvObject[int](1, 0); return err },
		"a long object": func() error {
			_, _, err := dist.RecvObject[[]byte](2, 0, dist.WithObjectLimit(10))
			return err
		},
	} {
		err := spawn(t, initialised(func(_ context.Context, rank int) error {
			switch rank {
			case 0:
				return call()
			case 2:
				return dist.SendObject(make([]byte, 100), 0, 0)
			}
			return nil
		}), dist.WithRanks(3))
		require.ErrorContains(t, err, "dist: ", name)
		require.NotContains(t, err.Error(), "ccl: ", name)
	}
}
