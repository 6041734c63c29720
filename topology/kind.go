package topology

import (
	"fmt"
	"strings"
)

// Kind is the shape of a topology. The zero value is Ring1D, the default of a configuration.
type Kind uint8

const (
	Ring1D       Kind = iota // "ring_1d": all ranks in one closed row
	Torus2D                  // "torus_2d": a grid whose rows and columns are rings
	Mesh2DNoWrap             // "mesh_2d_no_wrap": a grid that ends at its edges
)

var kindNames = [...]string{
	Ring1D:       "ring_1d",
	Torus2D:      "torus_2d",
	Mesh2DNoWrap: "mesh_2d_no_wrap",
}

// Kinds returns all kinds, in the order of their constants. The slice belongs to
// the caller.
func Kinds() []Kind { return []Kind{Ring1D, Torus2D, Mesh2DNoWrap} }

// String returns the name that ccl.yaml uses, such as "torus_2d".
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

// KindError says that there is no kind of this name. Its text lists the known
// ones and, where one resembles Name, the nearest.
type KindError struct {
	Name string
}

// Error names the unknown kind, the nearest known one, and all of them.
func (e *KindError) Error() string {
	hint := ""
	if near, ok := nearest(e.Name); ok {
		hint = fmt.Sprintf(" (did you mean %s?)", near)
	}
	return fmt.Sprintf("topology: unknown kind %q%s; use one of %s", e.Name, hint, strings.Join(kindNames[:], ", "))
}

// nearest returns the kind whose name has most letters in common with name, in
// the same order, if these are at least half of name's; of several the first.
// Edit distance would take "mesh_2d" for a misspelt "ring_1d", because
// mesh_2d_no_wrap is so much longer.
func nearest(name string) (Kind, bool) {
	name = strings.ToLower(name)
	var best Kind
	most := 0
	for _, k := range Kinds() {
		if n := common(name, k.String()); n > most {
			best, most = k, n
		}
	}
	return best, most > 0 && 2*most >= len(name)
}

// common returns the length of the longest common subsequence of a and b, by the
// usual dynamic programme, one row at a time.
func common(a, b string) int {
	row := make([]int, len(b)+1) // row[j]: of the part of a read so far, and b[:j]
	for i := range len(a) {
		diagonal := 0 // the previous row's value at j
		for j := range len(b) {
			above := row[j+1]
			if a[i] == b[j] {
				row[j+1] = diagonal + 1
			} else {
				row[j+1] = max(above, row[j])
			}
			diagonal = above
		}
	}
	return row[len(b)]
}
