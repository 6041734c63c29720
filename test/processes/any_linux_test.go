package processes

import (
	"os"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/goccl/goccl/dist"
)

// Rank 2 receives from any rank, rank 1 waits for rank 2, and rank 0 sends nothing. If it dies, that ends the receive; if it leaves, the
// timeout names it and the rank that waits.
func TestAnySourceWithoutASender(t *testing.T) {
	t.Parallel()
	for _, dies := range []bool{true, false} {
		p := part{Config: yamlFor(3), Rounds: 1, Timeout: 2 * time.Second, Scene: "any source", Talks: true}
		if dies {
			p.Timeout, p.Victim = patience/2, 0
		} else {
			p.Victim = -1
		}
		j := start(t, 3, p, nil)
		leaver := j.ranks[0]
		if dies {
			j.ranks[2].await("receives", 1)
			leaver.signal(syscall.SIGKILL)
		}
		got := j.ranks[2].sound()
		switch {
		case dies && (got.Lost == nil || got.Lost.Rank != 0 || got.Lost.PID != leaver.pid()):
			t.Errorf("%s; want that rank 0 is lost", got.Err)
		case !dies && (got.Late == nil || !slices.Equal(got.Late.Left, []int{0}) || !slices.Equal(got.Late.Behind, []int{0}) || !slices.Equal(got.Late.Waiting, []int{1})):
			t.Errorf("%s; want that rank 0 has left, and that rank 1 waits", got.Err)
		}
		if got := j.ranks[1].sound(); got.Lost == nil || got.Lost.Rank != 2 {
			t.Errorf("%s; want that rank 2 is lost", got.Err)
		}
		_ = leaver.report()
		j.leavesNothing()
	}
}

// anySource is the part of a rank: rank 0 leaves, unless it is to be killed.
func (p *part) anySource(at func(string), _ *result) error {
	rank, err := dist.GetRank()
	if err != nil {
		return err
	}
	switch rank {
	case 0:
		if p.Victim == 0 {
			_, _ = os.Stdin.Read(make([]byte, 1))
		}
		return nil
	case 1:
		_, err = dist.Recv(make([]int32, 1), 2, 0, dist.WithCallTimeout(patience))
	case 2:
		at("receives")
		_, err = dist.Recv(make([]int32, 1), dist.AnySource, 0)
	}
	return err
}
