package launcher

import (
	"context"
	"errors"
	"fmt"
	"log"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ddp"
	"github.com/goccl/goccl/dist"
	"github.com/goccl/goccl/partition"
	"github.com/goccl/goccl/primitive"
)

// A sharedFailure is an error that all ranks get in one call, and that rank 1 of 4 or all have brought.
type sharedFailure struct {
	do       func(rank int, dir string) error
	headline string // of the job
	first    int    // the rank of the first error of Spawn, -1 if it is not determined
	text     string // in the error of a rank that brought nothing
}

// Headlines. "…" stands for any text.
const (
	itself  = "rank 1 (pid …) made the others fail: the job failed after …"
	alike   = "all ranks failed alike: the job failed after …"
	differs = "rank 1 (pid …) brought another value than the others: the job failed after …"
	another = "rank 1 (pid …) made another call than the others: the job failed after …"
)

var bg = context.Background()

// reducer returns a Reducer of one parameter, of that many elements.
func reducer(elements int) (*ddp.Reducer, error) {
	group, err := dist.Default()
	if err != nil {
		return nil, err
	}
	return ddp.New(bg, group, []ddp.Parameter{ddp.Param("w", make([]float32, elements), nil)}, ddp.Options{})
}

// trained returns what a rank does with a Reducer.
func trained(do func(r *ddp.Reducer, rank int, dir string) error) func(rank int, dir string) error {
	return func(rank int, dir string) error {
		r, err := reducer(3)
		if err != nil {
			return err
		}
		return do(r, rank, dir)
	}
}

// loads returns what a rank does that loads a file, which has this text on ranks for which isForeign reports so.
func loads(isForeign func(rank int) bool, text string) func(rank int, dir string) error {
	return trained(func(r *ddp.Reducer, rank int, dir string) error {
		file := filepath.Join(dir, "model")
		if err := r.Save(bg, file, nil); err != nil {
			return err
		}
		if isForeign(rank) {
			file = filepath.Join(dir, fmt.Sprint("foreign-", rank))
			if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
				return err
			}
		}
		return r.Load(bg, file, nil)
	})
}

func isOne(rank int) bool { return rank == 1 }
func isAny(int) bool      { return true }

// divided returns what a rank does with a partition of all ranks.
func divided(do func(p *partition.Partition, rank int) error) func(rank int, dir string) error {
	return func(rank int, _ string) error {
		group, err := dist.Default()
		if err != nil {
			return err
		}
		p, err := partition.New(bg, group.Communicator())
		if err != nil {
			return err
		}
		return do(p, rank)
	}
}

// inHalf returns what a rank does with a partition of the ranks 3, 1 and 2, in which rank 1 is rank 1 as well, and
// rank 0, which is not in it, is not.
func inHalf(do func(p *partition.Partition, rank int) error) func(rank int, dir string) error {
	return divided(func(p *partition.Partition, rank int) error {
		half, err := p.Inclusive(bg, []int{3, 2, 1})
		if err != nil {
			return err
		}
		if err := do(half, rank); err != nil {
			return err
		}
		return dist.Barrier()
	})
}

// ifOne returns a on rank 1, and b on the others.
func ifOne[T any](rank int, a, b T) T {
	if rank == 1 {
		return a
	}
	return b
}

var sharedFailures = map[string]sharedFailure{
	"save into no folder": {trained(func(r *ddp.Reducer, _ int, dir string) error {
		return r.Save(bg, filepath.Join(dir, "missing", "model"), nil)
	}), "rank 0 (pid …) made the others fail: the job failed after …", 0, "model: rank 0: open "},
	"save of a bad state": {trained(func(r *ddp.Reducer, _ int, dir string) error {
		return r.Save(bg, filepath.Join(dir, "model"), make(chan int))
	}), "rank 0 (pid …) made the others fail: the job failed after …", 0, "model: rank 0: the state: "},
	"save of other parameters": {func(rank int, dir string) error {
		w := make([]float32, 3)
		group, err := dist.Default()
		if err != nil {
			return err
		}
		r, err := ddp.New(bg, group, []ddp.Parameter{ddp.Param("w", w, nil)}, ddp.Options{})
		if err != nil {
			return err
		}
		w[0] = ifOne[float32](rank, 1, 0)
		return r.Save(bg, filepath.Join(dir, "model"), nil)
	}, differs, 1, "on rank 1"},
	"load of a foreign file on one rank": {loads(isOne, "hello, world"), itself, 1, "rank 1: "},
	"load of a foreign file":             {loads(isAny, "hello, world"), alike, -1, ""},
	"load of no file": {trained(func(r *ddp.Reducer, _ int, dir string) error {
		return r.Load(bg, filepath.Join(dir, "missing"), nil)
	}), alike, -1, "no such file"},
	"load of no file on one rank": {trained(func(r *ddp.Reducer, rank int, dir string) error {
		if err := r.Save(bg, filepath.Join(dir, "model"), nil); err != nil {
			return err
		}
		return r.Load(bg, filepath.Join(dir, ifOne(rank, "missing", "model")), nil)
	}), differs, 1, "it does not exist on rank 1"},

	"no parameters on one rank": {func(rank int, _ string) error {
		group, err := dist.Default()
		if err != nil {
			return err
		}
		_, err = ddp.New(bg, group, ifOne(rank, nil, []ddp.Parameter{ddp.Param("w", make([]float32, 3), nil)}), ddp.Options{})
		return err
	}, itself, 1, "rank 1: there are no parameters"},
	"no parameters": {func(int, string) error {
		group, err := dist.Default()
		if err != nil {
			return err
		}
		_, err = ddp.New(bg, group, nil, ddp.Options{})
		return err
	}, alike, -1, "there are no parameters"},
	"another model": {func(rank int, _ string) error {
		_, err := reducer(ifOne(rank, 4, 3))
		return err
	}, differs, 1, "parameter 0"},
	"a parameter twice": {func(rank int, _ string) error {
		group, err := dist.Default()
		if err != nil {
			return err
		}
		w := make([]float32, 6)
		_, err = ddp.New(bg, group, []ddp.Parameter{ddp.Param("w", w[:3], nil), ddp.Param("v", w[ifOne(rank, 2, 3):][:3], nil)}, ddp.Options{})
		return err
	}, itself, 1, "rank 1: the values of"},

	"another shape of a partition": {divided(func(p *partition.Partition, rank int) error {
		_, err := p.Cartesian(bg, ifOne(rank, 1, 2), ifOne(rank, 4, 2))
		return err
	}), differs, 1, "ranks disagree on shape"},
	"partitions that do not match": {divided(func(p *partition.Partition, _ int) error {
		two, err := p.Inclusive(bg, []int{0, 1})
		if err != nil {
			return err
		}
		_, _, err = two.BroadcastTo(bg, p)
		if err == nil {
			return errors.New("a broadcast from 2 to 4 workers is possible")
		}
		return err
	}), alike, -1, "cannot be stretched"},
	"two workers in one place": {divided(func(p *partition.Partition, rank int) error {
		one, err := p.Inclusive(bg, []int{2})
		if err != nil {
			return err
		}
		other, err := p.Inclusive(bg, []int{1})
		if err != nil {
			return err
		}
		_, err = p.Teams(bg, ifOne(rank, other, one))
		return err
	}), "ranks 1, 2 failed alike: the job failed after …", -1, "workers 1 and 2"},
	"data that cannot be encoded": {divided(func(p *partition.Partition, rank int) error {
		_, err := partition.AllGatherData[any](bg, p, ifOne[any](rank, func() {}, nil))
		return err
	}), itself, 1, "rank 1: partition: all_gather_data: "},
	"data that cannot be encoded, in a part": {inHalf(func(p *partition.Partition, rank int) error {
		_, err := partition.AllGatherData[any](bg, p, ifOne[any](rank, func() {}, nil))
		if errors.Is(err, partition.ErrInactive) {
			return nil
		}
		return err
	}), itself, 1, "rank 1: partition: all_gather_data: "},

	"another tensor": {divided(func(p *partition.Partition, rank int) error {
		o, err := primitive.NewAllSumReduce[float32](bg, p, 0)
		if err != nil {
			return err
		}
		_, err = o.Forward(bg, nil, primitive.NewTensor[float32](ifOne(rank, 4, 3)))
		return err
	}), differs, 1, "ranks disagree on shape"},
	"another tensor, in a part": {inHalf(func(p *partition.Partition, rank int) error {
		o, err := primitive.NewAllSumReduce[float32](bg, p, 0)
		if err != nil {
			return err
		}
		_, err = o.Forward(bg, nil, primitive.NewTensor[float32](ifOne(rank, 4, 3)))
		return err
	}), differs, 1, "ranks disagree on shape"},
	"no tensor, in a part": {inHalf(func(p *partition.Partition, rank int) error {
		o, err := primitive.NewAllSumReduce[float32](bg, p, 0)
		if err != nil {
			return err
		}
		_, err = o.Forward(bg, nil, ifOne(rank, nil, primitive.NewTensor[float32](3)))
		return err
	}), itself, 1, "passes no tensor"},
	"another direction": {divided(func(p *partition.Partition, rank int) error {
		o, err := primitive.NewAllSumReduce[float32](bg, p, 0)
		if err != nil {
			return err
		}
		_, err = ifOne(rank, o.Adjoint, o.Forward)(bg, nil, primitive.NewTensor[float32](3))
		return err
	}), differs, 1, "ranks disagree on call"},
	"a tensor without the dimension": {divided(func(p *partition.Partition, _ int) error {
		o, err := primitive.NewAllGather[float32](bg, p, 0, 1)
		if err != nil {
			return err
		}
		_, err = o.Forward(bg, nil, primitive.NewTensor[float32](3))
		return err
	}), alike, -1, "has no dimension 1"},
	"tensors that do not add up": {divided(func(p *partition.Partition, rank int) error {
		o, err := primitive.NewAllGather[float32](bg, p, 0, 0)
		if err != nil {
			return err
		}
		_, err = o.Forward(bg, nil, primitive.NewTensor[float32](ifOne(rank, 4, 3)))
		return err
	}), alike, -1, "see Repartition"},

	"an object that cannot be encoded": {func(rank int, _ string) error {
		_, err := dist.AllGatherObject(ifOne[any](rank, func() {}, nil))
		return err
	}, itself, 1, "rank 1: "},
	"an object of no rank": {func(int, string) error {
		return dist.BroadcastObject(new(int), 7)
	}, alike, -1, "7"},
	"another group": {func(rank int, _ string) error {
		_, err := dist.NewGroup([]int{0, ifOne(rank, 1, 2)})
		return err
	}, another, 1, "ranks disagree on ranks"},
	"arguments that one rank rejects": {func(rank int, _ string) error {
		return dist.AllGather(make([]int, 4*ifOne(rank, 2, 1)), make([]int, 1))
	}, "rank 1 (pid …) was the first to fail, after …: exit status 1", 1, "output has 8 elements, want 4"},
}

func init() {
	// All ranks fail by themselves, with one text, before one of them ends.
	programs["alike"] = func(args []string) {
		awaitAll := func(point string) {
			if err := os.WriteFile(filepath.Join(args[0], point+os.Getenv("RANK")), nil, 0o600); err != nil {
				log.Fatal(err)
			}
			for all := []string(nil); len(all) < 3; {
				all, _ = filepath.Glob(filepath.Join(args[0], point+"*"))
			}
		}
		err := dist.Spawn(func(context.Context, int) error {
			if err := dist.InitProcessGroup("ccl"); err != nil {
				return err
			}
			err := dist.AllGather(make([]int, 9), make([]int, 1))
			awaitAll("rejected")
			return err
		})
		awaitAll("reported")
		log.Fatal(err)
	}
	// Rank 1 rejects a call and ends; then the others, whose group has failed since, reject it as well.
	programs["alike later"] = func(args []string) {
		first := filepath.Join(args[0], "first")
		log.Fatal(dist.Spawn(func(_ context.Context, rank int) error {
			if err := dist.InitProcessGroup("ccl"); err != nil {
				return err
			}
			if rank == 1 {
				if err := os.WriteFile(first, []byte(fmt.Sprint(os.Getpid())), 0o600); err != nil {
					return err
				}
			}
			if err := dist.Barrier(); err != nil {
				return err
			}
			pid, err := os.ReadFile(first)
			for state := "R"; err == nil && rank != 1 && state != "" && state[0] != 'Z'; {
				state = statusOf(number(string(pid)), "State")
			}
			return errors.Join(err, dist.AllGather(make([]int, 9), make([]int, 1)))
		}))
	}
	// Ranks make calls of two groups that the others do not make.
	programs["differs"] = func(args []string) {
		log.Fatal(dist.Spawn(func(_ context.Context, rank int) error {
			if err := dist.InitProcessGroup("ccl", dist.WithTimeout(3*time.Second)); err != nil {
				return err
			}
			first, err := reducer(3)
			if err != nil {
				return err
			}
			second, err := reducer(3)
			if err != nil {
				return err
			}
			switch {
			case args[0] == "order":
				return ifOne(rank, second, first).Save(bg, filepath.Join(args[1], "a"), nil)
			case rank == 0:
				return first.Save(bg, filepath.Join(args[1], "model"), nil)
			}
			return dist.Barrier()
		}))
	}
	programs["share"] = func(args []string) {
		if err := dist.Spawn(sharing(args[0], args[1])); err != nil {
			log.Fatal(err)
		}
	}
}

// sharing returns a worker whose ranks share an error.
func sharing(name, dir string) func(context.Context, int) error {
	return func(_ context.Context, rank int) error {
		if err := dist.InitProcessGroup("ccl"); err != nil {
			return err
		}
		return sharedFailures[name].do(rank, dir)
	}
}

// matches reports whether a text begins with a line of that pattern, in which "…" stands for any text.
func matches(text, pattern string) bool {
	line := strings.ReplaceAll(regexp.QuoteMeta(pattern), "…", ".*")
	return regexp.MustCompile(`^` + line + `(\n|$)`).MatchString(text)
}

func TestRanksThatFailAlike(t *testing.T) {
	e := start(testJob(3, "alike", t.TempDir())).failure(t)
	require.True(t, matches(e.Error(), alike), "%v", e)
	require.Contains(t, e.Error(), "output has 9 elements, want 3")
}

// So have ranks that fail by their own mistake a moment after the first, though their group has failed by then.
func TestRanksThatFailAlikeLater(t *testing.T) {
	for range max(*blames, 3) {
		e := start(testJob(3, "alike later", t.TempDir())).failure(t)
		require.Regexp(t, `^(all ranks|ranks .*) failed alike: the job failed after `, e.Error())
		require.Contains(t, e.Error(), "output has 9 elements, want 3")
		require.NotContains(t, e.Error(), "failed as well")
	}
}

// Of ranks that wait for each other in two groups, the one that makes another call than most is to blame,
// whichever gives up first.
func TestRankInAnotherGroup(t *testing.T) {
	for how, blamed := range map[string]int{"save alone": 0, "order": 1} {
		t.Run(how, func(t *testing.T) {
			for range max(*blames, 3) {
				e := start(testJob(3, "differs", how, t.TempDir())).failure(t)
				require.Equal(t, []int{blamed}, e.Blamed, "%v", e)
				if e.Cause != CauseSilent { // the last one may hear that the others have waited for it
					require.True(t, matches(e.Error(), strings.ReplaceAll(another, "rank 1", fmt.Sprint("rank ", blamed))), "%v", e)
				}
			}
		})
	}
}

// Of an error that all ranks get in one call, the job's names the rank that has brought it, or says
// that all failed alike, whichever rank ends first. So does the first error of Spawn.
func TestSharedErrors(t *testing.T) {
	for _, name := range slices.Sorted(maps.Keys(sharedFailures)) {
		f := sharedFailures[name]
		t.Run(name, func(t *testing.T) {
			for range max(*blames, 1) {
				e := start(testJob(4, "share", name, t.TempDir())).failure(t)
				require.True(t, matches(e.Error(), f.headline), "want %s\n%v", f.headline, e)
				require.Contains(t, e.Error(), f.text)
				require.Equal(t, 1, e.ExitCode())
			}

			err := dist.Spawn(sharing(name, t.TempDir()), dist.WithRanks(4))
			first, ok := errors.AsType[*dist.RankError](err)
			require.True(t, ok, "%v", err)
			require.Contains(t, err.Error(), f.text)
			if f.first >= 0 {
				require.Equal(t, f.first, first.Rank, "%v", err)
			}
		})
	}
}
