package primitive_test

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/partition"
	"github.com/goccl/goccl/partition/partitiontest"
	"github.com/goccl/goccl/primitive"
)

var update = flag.Bool("update", false, "write the pictures of docs/guides/partitions.md")

// The pictures of the guide are what the operators do: each colour is a worker, and each number comes out
// of a run.
func TestPictures(t *testing.T) {
	for name, draw := range map[string]func(t *testing.T) *picture{
		"partition": drawPartition, "broadcast": drawBroadcast, "repartition": drawRepartition, "halo": drawHalo,
	} {
		file := filepath.Join("..", "docs", "images", name+".svg")
		got := draw(t).text()
		if *update {
			require.NoError(t, os.WriteFile(file, []byte(got), 0o644))
		}
		want, err := os.ReadFile(file)
		require.NoError(t, err)
		require.Equal(t, string(want), got, "%s is not what the code draws: go test ./primitive -run TestPictures -update", file)
	}
}

// picture is an SVG.
type picture struct {
	width, height int
	body          strings.Builder
}

// colours of workers, by rank.
var colours = []string{"#9ecae1", "#fdae6b", "#a1d99b", "#bcbddc", "#fc9272", "#d9d9d9", "#fee391", "#c7e9c0"}

func (p *picture) text() string {
	return fmt.Sprintf(`<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" viewBox="0 0 %[1]d %[2]d" font-family="sans-serif" font-size="13" text-anchor="middle">
<defs><marker id="head" markerWidth="8" markerHeight="8" refX="7" refY="4" orient="auto"><path d="M0,0 L8,4 L0,8 z" fill="#333"/></marker></defs>
<rect width="%[1]d" height="%[2]d" fill="white"/>
%s</svg>
`, p.width, p.height, p.body.String())
}

func (p *picture) box(x, y, w, h int, colour, label string) {
	p.width, p.height = max(p.width, x+w+10), max(p.height, y+h+10)
	fmt.Fprintf(&p.body, `<rect x="%d" y="%d" width="%d" height="%d" fill="%s" stroke="#555"/>`+"\n", x, y, w, h, colour)
	if label != "" {
		fmt.Fprintf(&p.body, `<text x="%d" y="%d">%s</text>`+"\n", x+w/2, y+h/2+5, label)
	}
}

func (p *picture) caption(x, y int, text string) {
	p.height = max(p.height, y+8)
	fmt.Fprintf(&p.body, `<text x="%d" y="%d" font-weight="bold">%s</text>`+"\n", x, y, text)
}

func (p *picture) arrow(x1, y1, x2, y2 int) {
	fmt.Fprintf(&p.body, `<path d="M%d,%d L%d,%d" stroke="#333" fill="none" marker-end="url(#head)"/>`+"\n", x1, y1, x2, y2)
}

// gathered runs a function on workers and returns the results of all.
func gathered[R any](t *testing.T, workers int, f func(world *partition.Partition) (R, error)) (all []R) {
	partitiontest.Workers(t, workers, func(_ context.Context, world *partition.Partition) error {
		mine, err := f(world)
		if err != nil {
			return err
		}
		got, err := partition.AllGatherData(bg, world, mine)
		if world.Rank() == 0 {
			all = got
		}
		return err
	})
	return all
}

// A partition of 2 x 3 workers: ranks, indices, and the neighbours of one.
func drawPartition(t *testing.T) *picture {
	indices := gathered(t, 6, func(world *partition.Partition) ([]int, error) {
		p, err := world.Cartesian(bg, 2, 3)
		return p.Index(), err
	})
	p := &picture{}
	const side = 90
	p.caption(10+3*side/2, 20, "a partition of shape 2 x 3")
	for rank, index := range indices {
		x, y := 10+index[1]*side, 30+index[0]*side
		p.box(x, y, side, side, colours[rank], "")
		fmt.Fprintf(&p.body, `<text x="%d" y="%d" font-size="20">%d</text>`+"\n", x+side/2, y+side/2, rank)
		fmt.Fprintf(&p.body, `<text x="%d" y="%d" fill="#555">(%d, %d)</text>`+"\n", x+side/2, y+side/2+22, index[0], index[1])
	}
	return p
}

// A broadcast from a partition of shape 3 to one of shape 2 x 3.
func drawBroadcast(t *testing.T) *picture {
	groups := gathered(t, 7, func(world *partition.Partition) ([]int, error) {
		x, err := team{[]int{1, 2, 6}, []int{3}}.make(world)
		if err != nil {
			return nil, err
		}
		y, err := team{span(0, 6), []int{2, 3}}.make(world)
		if err != nil {
			return nil, err
		}
		_, recv, err := x.BroadcastTo(bg, y)
		return recv.Workers(), err
	})
	p := &picture{}
	const side, gap = 60, 110
	p.caption(10+3*side/2, 20, "x: shape 3")
	p.caption(10+3*side+gap+3*side/2, 20, "y: shape 2 x 3")
	sources := []int{1, 2, 6}
	for i, w := range sources {
		p.box(10+i*side, 30+side/2, side, side, colours[i], fmt.Sprint("worker ", w))
	}
	for w := range 6 {
		i := slices.Index(sources, groups[w][0])
		x, y := 10+3*side+gap+w%3*side, 30+w/3*side
		p.box(x, y, side, side, colours[i], fmt.Sprint("worker ", w))
	}
	p.arrow(10+3*side+15, 30+side, 10+3*side+gap-15, 30+side)
	p.caption(10+3*side+gap/2, 30+side-8, "copy")
	p.arrow(10+3*side+gap-15, 30+side+25, 10+3*side+15, 30+side+25)
	p.caption(10+3*side+gap/2, 30+side+44, "sum")
	return p
}

// A repartition from rows to columns: each element keeps the colour of the worker that it comes from.
func drawRepartition(t *testing.T) *picture {
	whole := []int{6, 6}
	columns := gathered(t, 3, func(world *partition.Partition) ([]int, error) {
		op, x, err := repartition[int](all(3, 1), all(1, 3), whole...)(world)
		if err != nil {
			return nil, err
		}
		y, err := op.Forward(bg, nil, x)
		if err != nil {
			return nil, err
		}
		return elements(y), op.Close()
	})
	p := &picture{}
	const side, gap = 30, 120
	p.caption(10+3*side, 20, "x: shape 3 x 1")
	p.caption(10+6*side+gap+3*side, 20, "y: shape 1 x 3")
	for i := range 36 {
		p.box(10+i%6*side, 30+i/6*side, side, side, colours[i/12], "")
	}
	for rank := range 3 {
		fmt.Fprintf(&p.body, `<text x="%d" y="%d" font-size="16">worker %d</text>`+"\n", 10+3*side, 30+side+rank*2*side+6, rank)
		for k, number := range columns[rank] {
			i := number - 1 // where it was in the whole tensor
			p.box(10+6*side+gap+(2*rank+k%2)*side, 30+k/2*side, side, side, colours[i/12], "")
		}
		x := 10 + 6*side + gap + 2*rank*side
		fmt.Fprintf(&p.body, `<rect x="%d" y="30" width="%d" height="%d" fill="none" stroke="black" stroke-width="3"/>`+"\n", x, 2*side, 6*side)
		fmt.Fprintf(&p.body, `<text x="%d" y="%d">worker %d</text>`+"\n", x+side, 48+6*side, rank)
		p.height = 60 + 6*side
	}
	p.arrow(10+6*side+15, 30+3*side, 10+6*side+gap-15, 30+3*side)
	p.caption(10+6*side+gap/2, 30+3*side-8, "all-to-all")
	return p
}

// A halo exchange on 2 x 2 workers: own cells have the worker's colour; ghost cells have that of the worker
// that they come from, and edges are white.
func drawHalo(t *testing.T) *picture {
	const own, side, gap = 4, 20, 60
	one := primitive.Halo{Left: 1, Right: 1}
	parts := gathered(t, 4, func(world *partition.Partition) ([]int, error) {
		op, x, err := haloExchange[int](grid{all(2, 2), [][]primitive.Halo{{one, one}, {one, one}}, []int{2 * own, 2 * own}})(world)
		if err != nil {
			return nil, err
		}
		x.Fill(-1)
		x.Slice(ccl.Range{Lo: 1, Hi: 1 + own}, ccl.Range{Lo: 1, Hi: 1 + own}).Fill(world.Rank())
		y, err := op.Forward(bg, nil, x)
		if err != nil {
			return nil, err
		}
		return elements(y), op.Close()
	})
	p := &picture{}
	const n = own + 2
	for rank, cells := range parts {
		x0, y0 := 10+rank%2*(n*side+gap), 10+rank/2*(n*side+gap)
		for k, from := range cells {
			colour := "white"
			if from >= 0 {
				colour = colours[from]
			}
			p.box(x0+k%n*side, y0+k/n*side, side, side, colour, "")
		}
		fmt.Fprintf(&p.body, `<rect x="%d" y="%d" width="%d" height="%d" fill="none" stroke="black" stroke-width="3"/>`+"\n", x0+side, y0+side, own*side, own*side)
		fmt.Fprintf(&p.body, `<text x="%d" y="%d">worker %d</text>`+"\n", x0+n*side/2, y0+n*side/2+5, rank)
	}
	middle := 10 + n*side/2
	p.arrow(10+n*side+5, middle-8, 10+n*side+gap-5, middle-8)
	p.arrow(10+n*side+gap-5, middle+8, 10+n*side+5, middle+8)
	p.arrow(middle-8, 10+n*side+5, middle-8, 10+n*side+gap-5)
	p.arrow(middle+8, 10+n*side+gap-5, middle+8, 10+n*side+5)
	return p
}
