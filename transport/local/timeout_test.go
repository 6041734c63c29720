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

// A timeout is counted in eighths: it ends a call between the timeout and nine
// eighths of it, and warns between a half and five eighths (S2.23). In a bubble a
// minute takes no time.
func TestTimeoutIsCountedInEighths(t *testing.T) {
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
		go eps[1].Enter(&transport.Entry{Ctx: t.Context(), Seq: 1})
		synctest.Wait()
		_, err := eps[0].Enter(&transport.Entry{Ctx: context.Background(), Seq: 1})
		took := time.Since(begin)

		var late *transport.TimeoutError
		if !errors.As(err, &late) || !slices.Equal(late.Missing, []int{2}) || late.After != timeout {
			t.Errorf("got %v, want a timeout of %v that names rank 2", err, timeout)
		}
		if took < timeout || took > timeout*9/8 {
			t.Errorf("it took %v", took)
		}
		if len(warned) != 1 || warned[0] < timeout/2 || warned[0] > timeout*5/8 {
			t.Errorf("warned after %v", warned)
		}
		for _, ep := range eps {
			ep.Close()
		}
	})
}
