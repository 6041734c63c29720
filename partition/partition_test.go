package partition_test

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"sync"
	"testing"

	"github.com/goccl/goccl/test/golden"
	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/partition"
)

// check returns an error if a value is not what a test wants.
func check(what string, got, want any) error {
	if reflect.DeepEqual(got, want) {
		return nil
	}
	return fmt.Errorf("%s is %v, want %v", what, got, want)
}

// ones checks that all workers of p can communicate: it has this many.
func ones(p *partition.Partition, workers int) error {
	all, err := partition.AllGatherData(bg, p, 1)
	return errors.Join(err, check("the number of workers", len(all), workers))
}

// The order of ranks is kept; workers that are not named are inactive, and stay so.
func TestInclusive(t *testing.T) {
	everyWorld(t, 4, func(world *partition.Partition) error {
		me := world.Rank()
		p, err := world.Inclusive(bg, []int{3, 0, 2})
		if err != nil {
			return err
		}
		inner, err := p.Inclusive(bg, []int{1, 0}) // of ranks in p
		if err != nil {
			return err
		}
		rank := map[int]int{3: 0, 0: 1, 2: 2}
		if me == 1 {
			return errors.Join(
				check("active", p.Active() || inner.Active(), false), check("size", p.Size(), 0), check("rank", p.Rank(), -1),
				check("shape", p.Shape(), []int(nil)), check("index", p.Index(), []int(nil)), check("workers", p.Workers(), []int(nil)),
			)
		}
		err = errors.Join(
			check("active", p.Active(), true), check("size", p.Size(), 3), check("rank", p.Rank(), rank[me]),
			check("shape", p.Shape(), []int{3}), check("index", p.Index(), []int{rank[me]}), check("workers", p.Workers(), []int{3, 0, 2}),
			check("inner is active", inner.Active(), me != 2), ones(p, 3),
		)
		if inner.Active() {
			err = errors.Join(err, check("inner workers", inner.Workers(), []int{0, 3}), ones(inner, 2))
		}
		return err
	})
}

// A union has its own workers first and repeats none. Workers of neither take part.
func TestUnion(t *testing.T) {
	everyWorld(t, 5, func(world *partition.Partition) error {
		for _, c := range []struct{ a, b, want []int }{
			{[]int{2, 0}, []int{3, 1}, []int{2, 0, 3, 1}},    // disjoint
			{[]int{2, 0}, []int{1, 0, 3}, []int{2, 0, 1, 3}}, // overlapping
			{[]int{2, 0}, []int{0, 2}, []int{2, 0}},          // the same workers
			{[]int{4}, []int{0, 1, 2, 3, 4}, []int{4, 0, 1, 2, 3}},
		} {
			a, err := world.Inclusive(bg, c.a)
			if err != nil {
				return err
			}
			b, err := world.Inclusive(bg, c.b)
			if err != nil {
				return err
			}
			u, err := a.Union(bg, b)
			if err != nil {
				return err
			}
			var want []int
			for _, w := range c.want {
				if w == world.Rank() {
					want = c.want
				}
			}
			if err := check("the union", u.Workers(), want); err != nil {
				return err
			}
			if u.Active() {
				if err := ones(u, len(c.want)); err != nil {
					return err
				}
			}
		}
		return nil
	})
}

// The common ancestor is the closest one: workers outside it do not take part.
func TestUnionWithinHalf(t *testing.T) {
	everyWorld(t, 5, func(world *partition.Partition) error {
		half, err := world.Inclusive(bg, []int{4, 3, 2})
		if err != nil {
			return err
		}
		if world.Rank() < 2 {
			return nil // it does not even know of them
		}
		a, err := half.Inclusive(bg, []int{0})
		if err != nil {
			return err
		}
		b, err := half.Inclusive(bg, []int{2, 0})
		if err != nil {
			return err
		}
		u, err := a.Union(bg, b)
		if err != nil || world.Rank() == 3 {
			return errors.Join(err, check("active", u.Active(), false))
		}
		return errors.Join(check("the union", u.Workers(), []int{4, 2}), ones(u, 2))
	})
}

// Equality is strict: the same workers, in the same order, in the same shape.
func TestEqual(t *testing.T) {
	everyWorld(t, 4, func(world *partition.Partition) error {
		var made []*partition.Partition
		for _, workers := range [][]int{{0, 1, 2, 3}, {0, 1, 2, 3}, {0, 1, 3, 2}} {
			p, err := world.Inclusive(bg, workers)
			if err != nil {
				return err
			}
			made = append(made, p)
		}
		for _, shape := range [][]int{{2, 2}, {2, 2}, {4}, {1, 4}} {
			p, err := made[0].Cartesian(bg, shape...)
			if err != nil {
				return err
			}
			made = append(made, p)
		}
		some, err := world.Inclusive(bg, []int{1, 2, 3})
		if err != nil {
			return err
		}
		other, err := world.Inclusive(bg, []int{1, 2, 3})
		if err != nil {
			return err
		}
		return errors.Join(
			check("equal to the world", made[0].Equal(world), true),
			check("equal to the same", made[0].Equal(made[1]), true),
			check("equal in another order", made[0].Equal(made[2]), false),
			check("equal in another shape", made[0].Equal(made[3]), false),
			check("equal in the same shape", made[3].Equal(made[4]), true),
			check("equal with one dimension", made[0].Equal(made[5]), true),
			check("equal with one dimension more", made[0].Equal(made[6]), false),
			check("equal to a part", some.Equal(world), false),
			check("equal to itself", some.Equal(some), true),
			check("equal where active", some.Equal(other), world.Rank() > 0),
			check("equal to nothing", world.Equal(nil), false),
		)
	})
}

func TestCartesian(t *testing.T) {
	everyWorld(t, 6, func(world *partition.Partition) error {
		p, err := among(world, []int{5, 4, 3, 2, 1, 0}, 2, 3)
		if err != nil {
			return err
		}
		me := 5 - world.Rank()
		index, err := p.IndexOf(me)
		if err != nil {
			return err
		}
		back, err := p.RankOf(index...)
		if err != nil {
			return err
		}
		beside, err := p.NeighborsOf(3)
		if err != nil {
			return err
		}
		_, outside := p.IndexOf(6)
		_, negative := p.NeighborsOf(-1)
		_, long := p.RankOf(1, 1, 1)
		_, far := p.RankOf(1, 3)
		var wrong *ccl.InvalidArgumentError
		for _, err := range []error{outside, negative, long, far} {
			if !errors.As(err, &wrong) {
				return fmt.Errorf("%v is not an InvalidArgumentError", err)
			}
		}
		return errors.Join(
			check("shape", p.Shape(), []int{2, 3}), check("index", p.Index(), []int{me / 3, me % 3}), check("index", index, p.Index()),
			check("rank", back, me), check("neighbours", beside, []partition.Neighbors{{0, partition.None}, {partition.None, 4}}),
			ones(p, 6),
		)
	})
}

// A sub-partition has the dimensions that are kept.
func TestSub(t *testing.T) {
	everyWorld(t, 6, func(world *partition.Partition) error {
		p, err := world.Cartesian(bg, 1, 2, 3)
		if err != nil {
			return err
		}
		row, err := p.Sub(bg, true, false, true)
		if err != nil {
			return err
		}
		column, err := p.Sub(bg, false, true, false)
		if err != nil {
			return err
		}
		self, err := p.Sub(bg, false, false, false)
		if err != nil {
			return err
		}
		all, err := p.Sub(bg, true, true, true)
		if err != nil {
			return err
		}
		i, j := world.Rank()/3, world.Rank()%3
		return errors.Join(
			check("row", row.Workers(), []int{3 * i, 3*i + 1, 3*i + 2}), check("its shape", row.Shape(), []int{1, 3}), check("its index", row.Index(), []int{0, j}),
			check("column", column.Workers(), []int{j, j + 3}), check("its shape", column.Shape(), []int{2}), check("its index", column.Index(), []int{i}),
			check("self", self.Workers(), []int{world.Rank()}), check("all", all.Equal(p), true), ones(row, 3), ones(column, 2),
		)
	})
}

// Inactive workers get ErrInactive where the rules need an active one, and do not communicate.
func TestInactive(t *testing.T) {
	everyWorld(t, 2, func(world *partition.Partition) error {
		p, err := world.Inclusive(bg, []int{0})
		if err != nil || world.Rank() == 0 {
			return err
		}
		var errs []error
		for _, call := range []func() error{
			func() error { _, err := p.AllReduction(bg); return err },
			func() error { _, err := p.Sub(bg, true); return err },
			func() error { _, err := p.IndexOf(0); return err },
			func() error { _, err := p.RankOf(0); return err },
			func() error { _, err := p.NeighborsOf(0); return err },
			func() error { _, err := partition.BroadcastData(bg, p, 1, 0); return err },
			func() error { _, err := partition.BroadcastDataFrom(bg, p, p, 1, 0); return err },
			func() error { _, err := partition.AllGatherData(bg, p, 1); return err },
			func() error { _, err := p.Teams(bg, p); return err },
			func() error { _, err := (*partition.Partition)(nil).AllReduction(bg); return err },
		} {
			if err := call(); !errors.Is(err, partition.ErrInactive) || !strings.HasPrefix(err.Error(), "partition: ") {
				errs = append(errs, fmt.Errorf("got %v", err))
			}
		}
		return errors.Join(append(errs, p.Close(), p.Close())...)
	})
}

// A mistake that all workers make is an error on all, and the partition stays usable.
func TestMistakes(t *testing.T) {
	texts := golden.Errors(t)
	everyWorld(t, 6, func(world *partition.Partition) error {
		p, err := among(world, []int{0, 1, 2, 3}, 2, 2)
		if err != nil {
			return err
		}
		q, err := among(world, []int{2, 3, 4}, 3)
		if err != nil {
			return err
		}
		none := &partition.Partition{}
		calls := map[string]func() error{
			"broadcast_to: the shape [2 2] has more dimensions than [3]":                                          func() error { _, _, err := p.BroadcastTo(bg, q); return err },
			"broadcast_to: the shape [3] cannot be stretched to [2 2]: in dimension 1 of 2, 3 is neither 1 nor 2": func() error { _, _, err := q.BroadcastTo(bg, p); return err },
			"reduction_to: the shape [3] cannot be stretched to [2 2]":                                            func() error { _, _, err := p.ReductionTo(bg, q); return err },
			"reduction_to: the shape [2 2] has more dimensions than [3]":                                          func() error { _, _, err := q.ReductionTo(bg, p); return err },
			"no common ancestor":                                    func() error { _, err := p.Union(bg, none); return err },
			"union: the partitions have no common ancestor":         func() error { _, err := p.Union(bg, nil); return err },
			"broadcast_to: the partitions have no common ancestor":  func() error { _, _, err := p.BroadcastTo(bg, nil); return err },
			"form: list 0: 6 is not a rank of a group of 6":         func() error { _, err := world.Inclusive(bg, []int{6}); return err },
			"form: list 0: the group has no ranks":                  func() error { _, err := world.Inclusive(bg, nil); return err },
			"the product of the shape [2 2] is not 6":               func() error { _, err := world.Cartesian(bg, 2, 2); return err },
			"sub: 2 dimensions are marked, and the shape [6] has 1": func() error { _, err := world.Sub(bg, true, true); return err },
		}
		if p.Active() {
			calls["all_reduction: axis 2 is not a dimension of the shape [2 2] (0 to 1)"] = func() error { _, err := p.AllReduction(bg, 2); return err }
			calls["all_reduction: axis 0 is named twice"] = func() error { _, err := p.AllReduction(bg, 0, 0); return err }
		}
		for _, want := range sorted(calls) { // in the same order on all workers
			err := calls[want]()
			texts.Add(want, err)
			var wrong *ccl.InvalidArgumentError
			if !errors.As(err, &wrong) || !strings.Contains(err.Error(), want) {
				return fmt.Errorf("got %v, want %s", err, want)
			}
		}
		return ones(world, 6)
	})
}

// A mistake of one worker is that worker's error, and the others get it by *ccl.MismatchError.
func TestMistakeOfOne(t *testing.T) {
	texts := golden.Errors(t)
	for name, call := range map[string]func(p *partition.Partition, one bool) error{
		"axis 3": func(p *partition.Partition, one bool) error {
			axis := 0
			if one {
				axis = 3
			}
			_, err := p.AllReduction(bg, axis)
			return err
		},
		"[2 1]": func(p *partition.Partition, one bool) error {
			shape := []int{1, 2}
			if one {
				shape = []int{2, 1}
			}
			_, err := p.Cartesian(bg, shape...)
			return err
		},
		"[7]": func(p *partition.Partition, one bool) error {
			shape := []int{2}
			if one {
				shape = []int{7}
			}
			_, err := p.Cartesian(bg, shape...)
			return err
		},
		"call: broadcast_to with options 0 on rank 0; broadcast_to with options 1 on rank 1": func(p *partition.Partition, one bool) error {
			var opts []partition.Option
			if one {
				opts = append(opts, partition.TransposeSource)
			}
			_, _, err := p.BroadcastTo(bg, p, opts...)
			return err
		},
		"call: broadcast_to with options 0 on rank 0; union with options 0 on rank 1": func(p *partition.Partition, one bool) error {
			if one {
				_, err := p.Union(bg, p)
				return err
			}
			_, _, err := p.BroadcastTo(bg, p)
			return err
		},
		"kept dimensions: [] on rank 0; [0] on rank 1": func(p *partition.Partition, one bool) error {
			_, err := p.Sub(bg, one)
			return err
		},
		"root: 0 on rank 0; 7 on rank 1": func(p *partition.Partition, one bool) error {
			root := 0
			if one {
				root = 7
			}
			_, err := partition.BroadcastDataFrom(bg, p, p, 1, root)
			return err
		},
		"partitions: 1 on rank 0; 2 on rank 1": func(p *partition.Partition, one bool) error {
			others := []*partition.Partition{p}
			if one {
				others = append(others, nil)
			}
			_, err := p.Teams(bg, others...)
			return err
		},
		"shape: [2] on rank 0; [1 2] on rank 1": func(p *partition.Partition, one bool) error { // different partitions
			c, err := p.Cartesian(bg, 1, 2)
			if err != nil {
				return err
			}
			if one {
				_, err = c.Union(bg, p)
			} else {
				_, err = p.Union(bg, c)
			}
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			var mu sync.Mutex
			errs := make(map[string]int)
			everyWorld(t, 2, func(world *partition.Partition) error {
				p, err := world.Inclusive(bg, []int{0, 1})
				if err != nil {
					return err
				}
				err = call(p, world.Rank() == 1)
				if err != nil {
					texts.Add(fmt.Sprintf("%s, rank %d", name, world.Rank()), err)
				}
				mu.Lock()
				defer mu.Unlock()
				switch {
				case err == nil || !strings.Contains(err.Error(), name):
					return fmt.Errorf("got %v", err)
				case errors.As(err, new(*ccl.MismatchError)):
					errs["mismatch"]++
				case errors.As(err, new(*ccl.InvalidArgumentError)):
					errs["argument"]++
				default:
					return err
				}
				return nil
			})
			require.Equal(t, 6, errs["mismatch"]+errs["argument"])
			require.GreaterOrEqual(t, errs["mismatch"], 3)
		})
	}
}

// What was made of a partition works after it was closed.
func TestClose(t *testing.T) {
	everyWorld(t, 3, func(world *partition.Partition) error {
		p, err := world.Inclusive(bg, []int{0, 1, 2})
		if err != nil {
			return err
		}
		q, err := p.Inclusive(bg, []int{2, 1, 0})
		if err != nil {
			return err
		}
		err = errors.Join(p.Close(), p.Close(), ones(q, 3), ones(world, 3))
		_, closed := p.Inclusive(bg, []int{0})
		if !errors.Is(closed, ccl.ErrClosed) {
			err = errors.Join(err, fmt.Errorf("got %w", closed))
		}
		return errors.Join(err, q.Close())
	})
}

// The Close of a partition of New closes all that were made of it.
func TestCloseAll(t *testing.T) {
	everyWorld(t, 2, func(world *partition.Partition) error {
		own, err := partition.New(bg, world.Communicator())
		if err != nil {
			return err
		}
		p, err := own.Inclusive(bg, []int{0, 1})
		if err != nil {
			return err
		}
		q, err := p.Cartesian(bg, 2, 1)
		if err != nil {
			return err
		}
		err = errors.Join(p.Close(), own.Close(), own.Close(), q.Close(), ones(world, 2))
		for _, closed := range []*partition.Partition{own, p, q} {
			if _, late := closed.Inclusive(bg, []int{0}); !errors.Is(late, ccl.ErrClosed) {
				err = errors.Join(err, fmt.Errorf("got %w", late))
			}
		}
		return err
	})
}
