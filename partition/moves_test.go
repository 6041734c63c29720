package partition_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/ccl/agree"
	"github.com/goccl/goccl/partition"
)

// The documents' example of an all-reduction: 2 x 3 x 2 over the dimensions 0 and 2.
func TestAllReduction(t *testing.T) {
	everyWorld(t, 12, func(world *partition.Partition) error {
		p, err := world.Cartesian(bg, 2, 3, 2)
		if err != nil {
			return err
		}
		group, err := p.AllReduction(bg, 0, 2)
		if err != nil {
			return err
		}
		none, err := p.AllReduction(bg)
		if err != nil {
			return err
		}
		all, err := p.AllReduction(bg, 1, 0, 2)
		if err != nil {
			return err
		}
		me := world.Rank()
		return errors.Join(
			check("group", group.Workers(), [][]int{{0, 1, 6, 7}, {2, 3, 8, 9}, {4, 5, 10, 11}}[p.Index()[1]]),
			check("no axes", none.Workers(), []int{me}), check("all axes", all.Workers(), span(0, 12)),
			ones(group, 4), ones(none, 1), ones(all, 12),
		)
	})
}

// table is a document's table: the groups, and for each worker the one in which it sends and
// receives.
var table = struct {
	groups     [][]int
	send, recv []int
}{
	groups: [][]int{{1, 0, 6, 7}, {2, 3, 8, 9}, {3, 4, 5, 10, 11}},
	send:   []int{-1, 0, 1, 2, -1, -1, -1, -1, -1, -1, -1, -1},
	recv:   []int{0, 0, 1, 1, 2, 2, 0, 0, 1, 1, 2, 2},
}

// The documents' example of a broadcast: 1 x 3 x 1 on the workers 1, 2, 3, to 2 x 3 x 2 on 0 to 11.
// Worker 3 sends in one group and receives in another; 1 and 2 receive from themselves.
func TestBroadcastTo(t *testing.T) {
	everyWorld(t, 13, func(world *partition.Partition) error {
		x, err := among(world, []int{1, 2, 3}, 1, 3, 1)
		if err != nil {
			return err
		}
		y, err := among(world, span(0, 12), 2, 3, 2)
		if err != nil {
			return err
		}
		send, recv, err := x.BroadcastTo(bg, y)
		if err != nil {
			return err
		}
		return errors.Join(tabulated(world, send, recv, table.send, table.recv), roots(send, recv, x.Active()))
	})
}

// The same in reverse: a reduction of 2 x 3 x 2 to 1 x 3 x 1.
func TestReductionTo(t *testing.T) {
	everyWorld(t, 13, func(world *partition.Partition) error {
		x, err := among(world, span(0, 12), 2, 3, 2)
		if err != nil {
			return err
		}
		y, err := among(world, []int{1, 2, 3}, 1, 3, 1)
		if err != nil {
			return err
		}
		send, recv, err := x.ReductionTo(bg, y)
		if err != nil {
			return err
		}
		return errors.Join(tabulated(world, send, recv, table.recv, table.send), roots(recv, send, y.Active()))
	})
}

// tabulated checks the groups of a worker.
func tabulated(world, send, recv *partition.Partition, sends, recvs []int) error {
	want := func(groups []int) []int {
		if world.Rank() < len(groups) && groups[world.Rank()] >= 0 {
			return table.groups[groups[world.Rank()]]
		}
		return nil
	}
	return errors.Join(check("send", send.Workers(), want(sends)), check("recv", recv.Workers(), want(recvs)),
		check("the groups are one", send == recv, slices.Equal(send.Workers(), recv.Workers()) && send.Active()))
}

// roots checks that data gets from the roots to all others, in the order in which all workers go
// through their groups.
func roots(from, to *partition.Partition, root bool) error {
	if root != from.Active() || root && from.Rank() != 0 {
		return fmt.Errorf("it is rank %d of its group", from.Rank())
	}
	var errs []error
	for _, p := range partition.InOrder(from, to) {
		first, err := partition.BroadcastData(bg, p, p.Workers()[p.Rank()], 0)
		errs = append(errs, err, check("the root", first, p.Workers()[0]))
	}
	return errors.Join(errs...)
}

// Partitions that are equal, overlap, or are disjoint, with workers in neither, in every order of
// workers: none deadlocks, and each destination receives from its source.
func TestMovesOfManyLayouts(t *testing.T) {
	for _, l := range []struct {
		x, y           []int
		shapeX, shapeY []int
		opts           []partition.Option
		from           []int // for each worker of y, the worker of x
	}{
		{x: []int{0, 1, 2, 3}, shapeX: []int{2, 2}, y: []int{0, 1, 2, 3}, shapeY: []int{2, 2}, from: []int{0, 1, 2, 3}},
		{x: []int{0, 1, 2, 3}, shapeX: []int{2, 2}, y: []int{3, 2, 1, 0}, shapeY: []int{2, 2}, from: []int{0, 1, 2, 3}},
		{x: []int{0, 1}, shapeX: []int{2}, y: []int{2, 3, 4, 5}, shapeY: []int{2, 2}, from: []int{0, 1, 0, 1}},
		{x: []int{5, 0}, shapeX: []int{2, 1}, y: []int{0, 5, 4, 3}, shapeY: []int{2, 2}, from: []int{5, 5, 0, 0}},
		{x: []int{4}, shapeX: []int{1}, y: []int{0, 1, 2}, shapeY: []int{3}, from: []int{4, 4, 4}},
		{x: []int{2, 4}, shapeX: []int{1, 2}, y: []int{0, 1, 2, 3}, shapeY: []int{2, 2}, opts: []partition.Option{partition.TransposeSource}, from: []int{2, 2, 4, 4}},
		{x: []int{2, 4}, shapeX: []int{2}, y: []int{0, 1, 2, 3}, shapeY: []int{2, 2}, opts: []partition.Option{partition.TransposeDest}, from: []int{2, 2, 4, 4}},
		{x: []int{0, 1, 2, 3, 4, 5}, shapeX: []int{2, 3}, y: []int{0, 1, 2, 3, 4, 5}, shapeY: []int{3, 2}, opts: []partition.Option{partition.TransposeSource}, from: []int{0, 1, 2, 3, 4, 5}},
		{x: []int{0, 1, 2, 3, 4, 5}, shapeX: []int{2, 3}, y: []int{0, 1, 2, 3, 4, 5}, shapeY: []int{2, 3}, opts: []partition.Option{partition.TransposeSource, partition.TransposeDest}, from: []int{0, 1, 2, 3, 4, 5}},
	} {
		t.Run(fmt.Sprint(l.shapeX, l.x, l.shapeY, l.y, len(l.opts)), func(t *testing.T) {
			everyWorld(t, 7, func(world *partition.Partition) error {
				x, err := among(world, l.x, l.shapeX...)
				if err != nil {
					return err
				}
				y, err := among(world, l.y, l.shapeY...)
				if err != nil {
					return err
				}
				send, recv, err := x.BroadcastTo(bg, y, l.opts...)
				if err != nil {
					return err
				}
				var back []partition.Option
				for _, o := range l.opts { // the reverse move
					back = append(back, partition.TransposeSource+partition.TransposeDest-o)
				}
				back1, back2, err := y.ReductionTo(bg, x, back...)
				if err != nil {
					return err
				}
				if i := slices.Index(l.y, world.Rank()); i >= 0 {
					err = errors.Join(check("the source", recv.Workers()[0], l.from[i]), check("the destination", back1.Workers()[0], l.from[i]))
				} else {
					err = check("receives", recv.Active() || back1.Active(), false)
				}
				if i := slices.Index(l.x, world.Rank()); i >= 0 {
					err = errors.Join(err, check("the sender", send.Workers()[0], world.Rank()), check("the receiver", back2.Workers()[0], world.Rank()))
				} else {
					err = errors.Join(err, check("sends", send.Active() || back2.Active(), false))
				}
				return errors.Join(err, roots(send, recv, x.Active()), roots(back2, back1, x.Active()))
			})
		})
	}
}

type described struct {
	Name  string
	Shape []int
}

// DistDL's own layout of a transposed source: each worker of 2 x 2 x 1 sends to its rank's place in
// the last two dimensions of 3 x 2 x 2, and a reduction by the mirrored option comes back.
func TestTransposedSource(t *testing.T) {
	everyWorld(t, 12, func(world *partition.Partition) error {
		x, err := among(world, []int{4, 5, 6, 7}, 2, 2, 1)
		if err != nil {
			return err
		}
		y, err := among(world, []int{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}, 3, 2, 2)
		if err != nil {
			return err
		}
		send, recv, err := x.BroadcastTo(bg, y, partition.TransposeSource)
		if err != nil {
			return err
		}
		back, sum, err := y.ReductionTo(bg, x, partition.TransposeDest)
		if err != nil {
			return err
		}
		group := [][]int{{4, 0, 8}, {5, 1, 9}, {6, 2, 10}, {7, 3, 11}}
		err = errors.Join(check("receives", recv.Workers(), group[world.Rank()%4]), check("contributes", back.Workers(), group[world.Rank()%4]))
		if x.Active() {
			err = errors.Join(err, check("sends", send.Workers(), group[x.Rank()]), check("sums", sum.Workers(), group[x.Rank()]))
		}
		return err
	})
}

// Receivers know neither type nor length of the data.
func TestBroadcastData(t *testing.T) {
	everyWorld(t, 4, func(world *partition.Partition) error {
		mine := described{}
		if world.Rank() == 2 {
			mine = described{"x", []int{1, 2}}
		}
		got, err := partition.BroadcastData(bg, world, mine, 2)
		if err != nil {
			return err
		}
		var data any
		if world.Rank() == 1 {
			data = []float32{1, 2, 3}
		}
		any, err := partition.BroadcastData(bg, world, data, 1)
		if err != nil {
			return err
		}
		_, bad := partition.BroadcastData(bg, world, 1, 4)
		var root *ccl.InvalidRootError
		return errors.Join(check("data", got, described{"x", []int{1, 2}}), check("data", any, []float32{1, 2, 3}), check("bad root", errors.As(bad, &root), true))
	})
}

// The source may be known by its rank in a part of the workers.
func TestBroadcastDataFrom(t *testing.T) {
	everyWorld(t, 4, func(world *partition.Partition) error {
		sub, err := world.Inclusive(bg, []int{3, 1})
		if err != nil {
			return err
		}
		data := ""
		if sub.Rank() == 0 {
			data = "of 3"
		}
		got, err := partition.BroadcastDataFrom(bg, world, sub, data, 0)
		if err != nil {
			return err
		}
		if !sub.Active() {
			sub = nil // a worker need not have a value of it
		}
		_, none := partition.BroadcastDataFrom(bg, world, sub, data, 2)
		_, negative := partition.BroadcastDataFrom(bg, world, sub, data, -1)
		row, err := world.Cartesian(bg, 2, 2)
		if err != nil {
			return err
		}
		if row, err = row.Sub(bg, false, true); err != nil { // another one on each row
			return err
		}
		_, two := partition.BroadcastDataFrom(bg, world, row, data, 0)
		if two == nil || !strings.Contains(two.Error(), "workers 0 and 2 are both rank 0 of it") {
			return fmt.Errorf("got %w", two)
		}
		var root *ccl.InvalidRootError
		if !errors.As(none, &root) {
			return fmt.Errorf("got %w", none)
		}
		return errors.Join(check("data", got, "of 3"), check("the error", *root, ccl.InvalidRootError{Root: 2, Size: 2}), check("refused", negative != nil, true), ones(world, 4))
	})
}

func TestAllGatherData(t *testing.T) {
	everyWorld(t, 3, func(world *partition.Partition) error {
		all, err := partition.AllGatherData(bg, world, span(0, world.Rank()))
		if err != nil {
			return err
		}
		mixed, err := partition.AllGatherData[any](bg, world, []any{"text", 2.5, []int16{3}}[world.Rank()])
		return errors.Join(err, check("the data", all, [][]int{nil, {0}, {0, 1}}), check("the data", mixed, []any{"text", 2.5, []int16{3}}))
	})
}

// What cannot be encoded is the source's error, which the others learn.
func TestDataThatCannotBeSent(t *testing.T) {
	sent := func(world *partition.Partition, err error) error {
		var m *ccl.MismatchError
		if mismatch := errors.As(err, &m); err == nil || mismatch != (world.Rank() == 0) {
			return fmt.Errorf("got %w", err)
		}
		return nil
	}
	everyWorld(t, 2, func(world *partition.Partition) error {
		_, err := partition.BroadcastData(bg, world, func() {}, 1)
		return sent(world, err)
	})
	everyWorld(t, 2, func(world *partition.Partition) error {
		var long []byte
		if world.Rank() == 1 {
			long = make([]byte, 64<<20)
		}
		_, err := partition.BroadcastData(bg, world, long, 1)
		return sent(world, err)
	})
	everyWorld(t, 2, func(world *partition.Partition) error {
		var errs []error
		for _, bad := range []any{func() {}, make([]byte, 64<<20)} {
			data := []any{nil, bad}[world.Rank()]
			_, err := partition.AllGatherData(bg, world, data)
			var rejected *agree.RejectedError
			if !errors.As(err, &rejected) || !slices.Equal(rejected.Ranks, []int{1}) {
				errs = append(errs, fmt.Errorf("got %w", err))
			}
		}
		return errors.Join(append(errs, ones(world, 2))...)
	})
}

// All workers learn who is in other partitions, also in those that they are not in.
func TestTeams(t *testing.T) {
	everyWorld(t, 4, func(world *partition.Partition) error {
		x, err := among(world, []int{3, 1}, 2, 1)
		if err != nil {
			return err
		}
		teams, err := world.Teams(bg, x, nil, world)
		if err != nil {
			return err
		}
		return errors.Join(
			check("the teams", teams, []partition.Team{{[]int{3, 1}, []int{2, 1}}, {[]int{}, []int{0}}, {[]int{0, 1, 2, 3}, []int{4}}}),
			check("a rank", []int{teams[0].Rank(1), teams[0].Rank(2)}, []int{1, -1}))
	})
}
