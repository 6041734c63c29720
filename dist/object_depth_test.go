package dist_test

import (
	"context"
	"encoding/gob"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/dist"
)

type knot struct {
	Name string
	Next *knot
	Any  any
	Kids []knot
	Map  map[string]*knot
}

func init() { gob.Register(&knot{}) }

// An object that contains itself is an error on all ranks; gob alone would end the process.
func TestObjectThatHoldsItself(t *testing.T) {
	rings := map[string]func() knot{
		"pointer": func() knot { k := &knot{}; k.Next = &knot{Next: k}; return *k },
		"slice":   func() knot { k := knot{Kids: make([]knot, 1)}; k.Kids[0].Kids = k.Kids; return k },
		"map":     func() knot { k := knot{Map: map[string]*knot{}}; k.Map["x"] = &k; return k },
		"any":     func() knot { k := &knot{}; k.Any = k; return *k },
		"deep": func() knot {
			k := knot{}
			for range 200_000 {
				k = knot{Next: &k}
			}
			return k
		},
	}
	for name, ring := range rings {
		t.Run(name, func(t *testing.T) {
			err := spawn(t, initialised(func(_ context.Context, rank int) error {
				k := knot{Name: "mine"}
				if rank == 0 {
					k = ring()
				}
				err := dist.BroadcastObject(&k, 0)
				var object *dist.ObjectError
				if assert.ErrorAs(t, err, &object) {
					assert.Equal(t, 0, object.Rank)
				}
				assert.Regexp(t, "holds itself, and gob cannot write that|is more than 100000 values deep", err)
				return dist.Barrier() // the group is intact
			}), dist.WithRanks(2))
			require.NoError(t, err)
		})
	}
}

// Shared values that form no cycle are encoded, and so are types that encode themselves.
func TestObjectThatSharesParts(t *testing.T) {
	shared := &knot{Name: "shared"}
	err := spawn(t, initialised(func(_ context.Context, rank int) error {
		type object struct {
			K    knot
			At   time.Time
			Long []float64
		}
		var o object
		if rank == 0 {
			kids := []knot{{Name: "a", Next: shared}, {Name: "b", Next: shared}}
			o = object{K: knot{Kids: kids, Map: map[string]*knot{"s": shared, "t": shared}}, At: time.Unix(1, 0), Long: slices.Repeat([]float64{1}, 1000)}
		}
		if err := dist.BroadcastObject(&o, 0); err != nil {
			return err
		}
		assert.Equal(t, "shared", o.K.Kids[1].Next.Name)
		assert.Equal(t, "shared", o.K.Map["t"].Name)
		assert.True(t, time.Unix(1, 0).Equal(o.At))
		return nil
	}), dist.WithRanks(2))
	require.NoError(t, err)
}
