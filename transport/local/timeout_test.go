package local_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goccl/goccl/transport"
	"github.com/goccl/goccl/transport/local"
)

// A timeout is counted in sixteenths. It ends a call after 1.0 to 1.1 of its duration and warns
// after 0.5 to 0.6. In a synctest bubble a minute takes no time.
func TestTimeoutIsCountedInSixteenths(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const timeout = time.Minute
		eps := local.NewWaiting(3, local.Park)
		begin := time.Now()
		var warned []time.Duration
		eps[0].SetTimeout(transport.Timeout{After: timeout, Warn: func(seq uint64, missing []int) {
			warned = append(warned, time.Since(begin))
			if seq != 1 || !slices.Equal(missing, []int{2}) {
				t.Errorf("warned of call %d, missing %v; want call 1, missing 2", seq, missing)
			}
		}})
		go eps[1].Enter(&transport.Arrival{Ctx: t.Context(), Seq: 1})
		synctest.Wait()
		_, err := eps[0].Enter(&transport.Arrival{Ctx: context.Background(), Seq: 1})
		took := time.Since(begin)

		var late *transport.TimeoutError
		if !errors.As(err, &late) || !slices.Equal(late.Missing, []int{2}) || late.After != timeout {
			t.Errorf("got %v, want a timeout of %v that names rank 2", err, timeout)
		}
		if took < timeout || took > timeout*11/10 {
			t.Errorf("it took %v", took)
		}
		if len(warned) != 1 || warned[0] < timeout/2 || warned[0] > timeout*6/10 {
			t.Errorf("warned after %v", warned)
		}
		for _, ep := range eps {
			ep.Close()
		}
	})
}

// Ticks of an earlier call's timeout do not end a later call with another timeout.
func TestTicksOfAnEarlierTimeout(t *testing.T) {
	for _, waiting := range []local.Waiting{local.Poll, local.Park} {
		synctest.Test(t, func(t *testing.T) {
			eps := local.NewWaiting(2, waiting)
			warn := func(uint64, []int) { t.Error("warned") }
			calls := func(rank int, works time.Duration) error {
				ep := eps[rank]
				for seq, timeout := range []time.Duration{1: 20 * time.Millisecond, 2: time.Minute} {
					if seq == 0 {
						continue
					}
					if seq == 1 {
						time.Sleep(works / 10)
					}
					e := &transport.Arrival{Ctx: context.Background(), Seq: uint64(seq), Exposed: true, Limit: transport.Timeout{After: timeout, Warn: warn}}
					if _, err := ep.Enter(e); err != nil {
						return err
					}
					if seq == 2 {
						time.Sleep(works) // with the ticker of call 1
					}
					if err := ep.Complete(); err != nil {
						return err
					}
				}
				return nil
			}
			errs := make(chan error)
			go func() { errs <- calls(0, 30*time.Millisecond) }()
			go func() { errs <- calls(1, 60*time.Millisecond) }()
			for range eps {
				if err := <-errs; err != nil {
					t.Error(err)
				}
			}
			for _, ep := range eps {
				ep.Close()
			}
		})
	}
}

// A rank that is closed inside a call waits for a peer that is stuck in it until the timeout has
// passed once more, like any rank that gives up.
func TestSecondTimeoutAfterClose(t *testing.T) {
	for _, waiting := range []local.Waiting{local.Poll, local.Park} {
		synctest.Test(t, func(t *testing.T) {
			const timeout = time.Minute
			eps := local.NewWaiting(2, waiting)
			testEnd := make(chan struct{})
			go func() {
				_, _ = eps[1].Enter(&transport.Arrival{Ctx: context.Background(), Seq: 1, Exposed: true})
				<-testEnd // stuck
			}()
			e := &transport.Arrival{Ctx: context.Background(), Seq: 1, Exposed: true, Limit: transport.Timeout{After: timeout}}
			if _, err := eps[0].Enter(e); err != nil {
				t.Fatal(err)
			}
			go func() {
				time.Sleep(time.Second)
				eps[0].Close()
			}()
			begin := time.Now()
			if err := eps[0].Complete(); !errors.Is(err, transport.ErrClosed) {
				t.Errorf("Complete returned %v", err)
			}
			if took := time.Since(begin); took > 2*time.Second {
				t.Errorf("Complete returned after %v", took)
			}
			eps[0].Fail(&transport.Failure{Kind: transport.FailurePeerLost, Ranks: []int{0}})
			begin = time.Now()
			if eps[0].Withdraw() {
				t.Error("the call has ended well")
			}
			if took := time.Since(begin); took < timeout || took > timeout*11/10 {
				t.Errorf("Withdraw took %v", took)
			}
			close(testEnd)
			eps[1].Close()
		})
	}
}
