package dist_test

import (
	"context"
	"errors"
	"testing"

	"github.com/goccl/goccl/dist"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Groups number ranks on their own; calls of dist use global ranks.
func TestNewGroup(t *testing.T) {
	err := spawn(t, initialised(func(ctx context.Context, rank int) error {
		g, err := dist.NewGroup([]int{4, 1, 3}) // sorted
		if err != nil {
			return err
		}
		if rank == 0 || rank == 2 {
			assert.Nil(t, g)
			assert.ErrorContains(t, dist.Barrier(dist.WithGroup(g)), "call only on ranks for which dist.NewGroup returned a group")
			return nil
		}
		in := dist.WithGroup(g)
		assert.Equal(t, []int{1, 3, 4}, g.Ranks())
		mine, err := dist.GetRank(in)
		assert.NoError(t, err)
		size, err := dist.GetWorldSize(in)
		assert.NoError(t, err)
		assert.Equal(t, 3, size)
		global, err := g.GlobalRank(mine)
		assert.NoError(t, err)
		assert.Equal(t, rank, global)
		back, err := g.GroupRank(rank)
		assert.NoError(t, err)
		assert.Equal(t, mine, back)
		_, err = g.GroupRank(2)
		assert.EqualError(t, err, "dist: group_rank: 2 is not in the group of ranks 1, 3, 4")

		tensor := []int{rank}
		if err := dist.Broadcast(tensor, 3, in); err != nil {
			return err
		}
		assert.Equal(t, []int{3}, tensor)
		tensor = []int{rank}
		if err := dist.Reduce(tensor, 4, dist.Sum, in); err != nil {
			return err
		}
		assert.Equal(t, map[int]int{1: 1, 3: 3, 4: 8}[rank], tensor[0])
		obj, err := dist.GatherObject(rank, 1, in)
		if err != nil {
			return err
		}
		if rank == 1 {
			assert.Equal(t, []int{1, 3, 4}, obj)
		}

		var root *dist.InvalidRootError
		err = dist.Broadcast(tensor, 2, in) // 2 is group rank of 4, and global rank of a non-member
		if assert.ErrorAs(t, err, &root) {
			assert.Equal(t, dist.InvalidRootError{Root: 2, Size: 3}, *root)
		}
		assert.ErrorContains(t, err, "dist: broadcast: rank 2 is not in the group of ranks 1, 3, 4 (call ")
		work, err := dist.BroadcastAsync(tensor, 2, in)
		if err != nil {
			return err
		}
		assert.ErrorAs(t, work.Wait(ctx), &root)
		assert.ErrorContains(t, work.Wait(ctx), "ccl: broadcast: the root is not in the group of ranks 1, 3, 4 (call ")
		work, err = dist.ReduceAsync(tensor, 0, dist.Sum, in)
		if err != nil {
			return err
		}
		assert.ErrorContains(t, work.Wait(ctx), "ccl: reduce: the root is not in the group of ranks 1, 3, 4 (call ")
		var object *dist.ObjectError
		if assert.ErrorAs(t, dist.BroadcastObject(&tensor, rank-rank%2, in), &object) {
			assert.Contains(t, []int{1, 3}, object.Rank, "a global rank; 4 is in the group")
			assert.Regexp(t, `^dist: broadcast_object: rank [13]: rank [02] is not in the group of ranks 1, 3, 4$`, object.Error())
		}
		return dist.Barrier(in)
	}), dist.WithRanks(5))
	require.NoError(t, err)
}

// Groups of groups, ordered by key.
func TestSplit(t *testing.T) {
	err := spawn(t, initialised(func(ctx context.Context, rank int) error {
		half, err := dist.Split(rank%2, -rank)
		if err != nil {
			return err
		}
		assert.Equal(t, [][]int{{4, 2, 0}, {5, 3, 1}}[rank%2], half.Ranks())
		color := half.Rank() // the first of each half is in no group
		if color == 0 {
			color = -1
		}
		pair, err := dist.Split(min(color, 1), 0, dist.WithGroup(half))
		if err != nil {
			return err
		}
		if rank >= 4 {
			assert.Nil(t, pair)
			return nil
		}
		assert.Equal(t, [][]int{{2, 0}, {3, 1}}[rank%2], pair.Ranks())
		one, err := dist.NewGroup([]int{rank % 2}, dist.WithGroup(pair)) // global ranks
		if err != nil || rank > 1 {
			return err
		}
		assert.Equal(t, []int{rank}, one.Ranks())
		return dist.Barrier(dist.WithGroup(one))
	}), dist.WithRanks(6))
	require.NoError(t, err)
}

// first drops all groups but this rank's.
func first(mine *dist.ProcessGroup, _ []*dist.ProcessGroup, err error) (*dist.ProcessGroup, error) {
	return mine, err
}

// A nil list of ranks stands for all, as None does in torch.
func TestNewGroupOfAll(t *testing.T) {
	err := spawn(t, initialised(func(ctx context.Context, rank int) error {
		odd, err := dist.Split(rank%2, -rank)
		if err != nil {
			return err
		}
		all, err := dist.NewGroup(nil, dist.WithGroup(odd))
		if err != nil {
			return err
		}
		assert.Equal(t, [][]int{{2, 0}, {3, 1}}[rank%2], all.Ranks(), "in the order of the group that it is made of")
		return dist.Barrier(dist.WithGroup(all))
	}), dist.WithRanks(4))
	require.NoError(t, err)
}

func TestNewSubgroups(t *testing.T) {
	err := spawn(t, initialised(func(ctx context.Context, rank int) error {
		mine, all, err := dist.NewSubgroups(2)
		if err != nil {
			return err
		}
		assert.Len(t, all, 3)
		for i, g := range all {
			assert.Equal(t, i == rank/2, g != nil)
		}
		assert.Same(t, mine, all[rank/2])
		assert.Equal(t, []int{rank - rank%2, rank - rank%2 + 1}, mine.Ranks())
		if err := dist.Barrier(dist.WithGroup(mine)); err != nil {
			return err
		}

		mine, all, err = dist.NewSubgroupsByEnumeration([][]int{{4, 0, 2}, {3}}) // sorted
		if err != nil {
			return err
		}
		assert.Len(t, all, 2)
		if rank == 1 || rank == 5 {
			assert.Nil(t, mine)
			return nil
		}
		assert.Same(t, mine, all[rank%2])
		assert.Equal(t, [][]int{{0, 2, 4}, {3}}[rank%2], mine.Ranks())
		return dist.Barrier(dist.WithGroup(mine))
	}), dist.WithRanks(6))
	require.NoError(t, err)
}

func TestRefusedGroups(t *testing.T) {
	err := spawn(t, initialised(func(ctx context.Context, rank int) error {
		half, err := dist.Split(rank/2, 0)
		if err != nil {
			return err
		}
		for text, call := range map[string]func() (*dist.ProcessGroup, error){
			"4 is not in the group of ranks 0-3":        func() (*dist.ProcessGroup, error) { return dist.NewGroup([]int{0, 4}) },
			"new_group: rank 1 is named twice":          func() (*dist.ProcessGroup, error) { return dist.NewGroup([]int{1, 1}) },
			"new_group: the group has no ranks":         func() (*dist.ProcessGroup, error) { return dist.NewGroup([]int{}) },
			"groups of 3 ranks: the size must divide 4": func() (*dist.ProcessGroup, error) { return first(dist.NewSubgroups(3)) },
			"groups of 0 ranks":                         func() (*dist.ProcessGroup, error) { return first(dist.NewSubgroups(0)) },
			"groups of 4 ranks: the size must divide 2": func() (*dist.ProcessGroup, error) { return first(dist.NewSubgroups(4, dist.WithGroup(half))) },
			"rank 1 is in the lists 0 and 2": func() (*dist.ProcessGroup, error) {
				return first(dist.NewSubgroupsByEnumeration([][]int{{1}, {2}, {3, 1}}))
			},
			"form: list 1: rank 2 is named twice": func() (*dist.ProcessGroup, error) {
				return first(dist.NewSubgroupsByEnumeration([][]int{{1}, {2, 2}}))
			},
			"form: list 0: the group has no ranks": func() (*dist.ProcessGroup, error) { return first(dist.NewSubgroupsByEnumeration([][]int{{}})) },
			"5 is not in the group of ranks 0-3":   func() (*dist.ProcessGroup, error) { return first(dist.NewSubgroupsByEnumeration([][]int{{1, 5}})) },
			" is not in the group of ranks ":       func() (*dist.ProcessGroup, error) { return dist.NewGroup([]int{(rank + 2) % 4}, dist.WithGroup(half)) },
			"pass that of dist.Default, or call":   func() (*dist.ProcessGroup, error) { return dist.Split(0, 0, dist.WithGroup(nil)) },
		} {
			g, err := call()
			assert.Nil(t, g)
			assert.ErrorContains(t, err, text)
			var invalid *dist.InvalidArgumentError
			assert.ErrorAs(t, err, &invalid)
		}
		return errors.Join(dist.Barrier(dist.WithGroup(half)), dist.Barrier()) // both are intact
	}), dist.WithRanks(4))
	require.NoError(t, err)
}

// A group ends by itself, with the default group, and with its worker.
func TestGroupsEnd(t *testing.T) {
	err := spawn(t, initialised(func(ctx context.Context, rank int) error {
		a, err := dist.NewGroup([]int{0, 1})
		if err != nil {
			return err
		}
		b, err := dist.Split(0, 0, dist.WithGroup(a))
		if err != nil {
			return err
		}
		assert.NoError(t, dist.DestroyProcessGroup(dist.WithGroup(a)))
		assert.ErrorIs(t, dist.DestroyProcessGroup(dist.WithGroup(a)), dist.ErrNotInitialized)
		assert.ErrorIs(t, dist.Barrier(dist.WithGroup(a)), dist.ErrClosed)
		assert.Equal(t, []int{0, 1}, a.Ranks(), "it still says what it was")
		assert.NoError(t, dist.Barrier(dist.WithGroup(b)), "those that were made of it live on")
		if err := dist.Barrier(); err != nil {
			return err
		}
		if err := dist.DestroyProcessGroup(); err != nil {
			return err
		}
		assert.ErrorIs(t, dist.Barrier(dist.WithGroup(b)), dist.ErrNotInitialized)
		return dist.InitProcessGroup("ccl")
	}), dist.WithRanks(2))
	require.NoError(t, err)
}

// A worker that fails ends the calls of its groups, too. Its error comes first, though
// the errors of the other ranks use group ranks.
func TestWorkerFailsInGroup(t *testing.T) {
	broken := errors.New("out of memory")
	err := spawn(t, initialised(func(ctx context.Context, rank int) error {
		g, err := dist.NewGroup([]int{1, 2})
		if err != nil {
			return err
		}
		switch rank {
		case 1:
			err = dist.Barrier(dist.WithGroup(g))
			var aborted *dist.AbortedError
			if assert.ErrorAs(t, err, &aborted) {
				assert.Equal(t, 1, aborted.By, "rank 2 of the job is rank 1 of the group")
			}
			return err
		case 2:
			return broken
		}
		return nil
	}), dist.WithRanks(3))
	require.ErrorIs(t, err, broken)
	errs := err.(interface{ Unwrap() []error }).Unwrap()
	require.Len(t, errs, 2)
	require.Equal(t, 2, errs[0].(*dist.RankError).Rank)
}
