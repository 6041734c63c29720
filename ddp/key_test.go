package ddp_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/ddp"
	"github.com/goccl/goccl/half"
)

// A rank that loads while the others save is named: the barriers with which both begin do not pass
// for one another.
func TestSaveBesideLoad(t *testing.T) {
	everywhere(t, "save beside load", 2, func(t *testing.T, all []outcome) {
		t.Helper()
		for _, o := range all {
			require.Contains(t, o.Err, `ranks disagree on key: "ddp.Load" on rank 0; "ddp.Save" on `)
			require.Contains(t, o.Err, checkpointHint)
		}
	})
}

func saveBesideLoad(rank, ranks int, _ *outcome) error {
	r, _, err := three(ddp.Options{}, false)
	if err != nil {
		return err
	}
	path := filepath.Join(os.TempDir(), fmt.Sprint("never-written-by-", ranks))
	if rank == 0 {
		return r.Load(bg, path, nil)
	}
	return r.Save(bg, path, nil)
}

// A program's own call on the Reducer's group does not pass for a bucket of the others.
func TestCallBesideBucket(t *testing.T) {
	everywhere(t, "call beside bucket", 2, func(t *testing.T, all []outcome) {
		t.Helper()
		for _, o := range all {
			require.Contains(t, o.Err, `ranks disagree on key: none on rank 0; "ddp bucket 0" on `)
		}
	})
}

func callBesideBucket(rank, _ int, _ *outcome) error {
	p := ddp.Param("w", make([]float32, 3), make([]float32, 3))
	h := beside{ddp.BFloat16(), rank == 0}
	r, err := ddp.New(bg, world(), []ddp.Parameter{p}, ddp.Options{Hooks: ddp.Hooks{Float32: h}})
	if err != nil {
		return err
	}
	r.Ready(0)
	return r.Wait(bg)
}

// beside makes a call of its own before that of the bucket, of the same shape, on a rank.
type beside struct {
	ddp.Hook[float32]
	isOn bool
}

func (h beside) Start(b *ddp.Bucket[float32]) *ccl.Work {
	if h.isOn {
		x := make([]half.BFloat16, len(b.Gradients))
		startedBy(func(async ccl.CallOption) error { return ccl.AllReduce(bg, b.Comm, x, x, ccl.Sum, async) })
	}
	return h.Hook.Start(b)
}
