package topology

import (
	"fmt"

	"github.com/goccl/goccl/internal/text"
)

// Kind is the shape of a topology. The zero value is Ring1D, the default of a configuration.
type Kind uint8

const (
	Ring1D       Kind = iota // "ring_1d": one ring of all ranks
	Torus2D                  // "torus_2d": a grid whose rows and columns are rings
	Mesh2DNoWrap             // "mesh_2d_no_wrap": a grid whose rows and columns end at its edges
)

var kindNames = [...]string{
	Ring1D:       "ring_1d",
	Torus2D:      "torus_2d",
	Mesh2DNoWrap: "mesh_2d_no_wrap",
}

// Kinds returns all kinds, in the order of their constants. The caller owns the slice.
func Kinds() []Kind { return []Kind{Ring1D, Torus2D, Mesh2DNoWrap} }

// String returns the kind's name in ccl.yaml, such as "torus_2d".
func (k Kind) String() string {
	if !k.known() {
		return fmt.Sprintf("Kind(%d)", uint8(k))
	}
	return kindNames[k]
}

func (k Kind) known() bool { return int(k) < len(kindNames) }

// ParseKind returns the kind with exactly this name, or a *KindError.
func ParseKind(name string) (Kind, error) {
	for _, k := range Kinds() {
		if k.String() == name {
			return k, nil
		}
	}
	return 0, &KindError{Name: name}
}

// KindError is ParseKind's error for an unknown name.
type KindError struct {
	Name string
}

// Error lists the known kinds, and suggests one if its name resembles Name.
func (e *KindError) Error() string { return "topology: " + e.Reason() }

// Reason returns the text without the package.
func (e *KindError) Reason() string {
	names := kindNames[:]
	return fmt.Sprintf("unknown kind %q%s; use one of %s", e.Name, text.DidYouMean(e.Name, names), text.List(names))
}
