package chart

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgimg"
	"gonum.org/v1/plot/vg/vgsvg"

	"github.com/goccl/goccl/cmd/goccl/internal/measure"
)

// The size of the two panels of a section.
const (
	width     = 26 * vg.Centimeter
	rowHeight = 9.5 * vg.Centimeter
)

// Save draws the results into a file, as SVG or PNG by its name.
func Save(path string, results []measure.Result) error {
	picture, err := SVG(results)
	if filepath.Ext(path) == ".png" {
		picture, err = PNG(results)
	}
	if err != nil {
		return err
	}
	return os.WriteFile(path, picture, 0o666)
}

// SVG draws the results as an SVG document.
func SVG(results []measure.Result) ([]byte, error) {
	var b bytes.Buffer
	err := drawTo(results, func(height vg.Length) vg.CanvasWriterTo { return vgsvg.New(width, height) }, &b)
	// Fallbacks if the font is not installed.
	text := bytes.ReplaceAll(b.Bytes(), []byte("font-family:Liberation Sans;"), []byte("font-family:'Liberation Sans',Arial,Helvetica,sans-serif;"))
	return text, err
}

// PNG draws the results as a PNG image, at 144 dots per inch.
func PNG(results []measure.Result) ([]byte, error) {
	var b bytes.Buffer
	err := drawTo(results, func(height vg.Length) vg.CanvasWriterTo {
		return vgimg.PngCanvas{Canvas: vgimg.NewWith(vgimg.UseWH(width, height), vgimg.UseDPI(144))}
	}, &b)
	return b.Bytes(), err
}

func drawTo(results []measure.Result, newCanvas func(height vg.Length) vg.CanvasWriterTo, b *bytes.Buffer) error {
	var rows [][]*plot.Plot
	for _, s := range sections(results) {
		latency, bandwidth, err := s.panels()
		if err != nil {
			return err
		}
		rows = append(rows, []*plot.Plot{latency, bandwidth})
	}
	if len(rows) == 0 {
		return errors.New("nothing to draw: no result has a length")
	}
	c := newCanvas(rowHeight * vg.Length(len(rows)))
	tiles := draw.Tiles{
		Rows: len(rows), Cols: 2,
		PadLeft: 3 * vg.Millimeter, PadRight: 5 * vg.Millimeter, PadTop: 4 * vg.Millimeter, PadBottom: 3 * vg.Millimeter,
		PadX: 8 * vg.Millimeter, PadY: 8 * vg.Millimeter,
	}
	whole := draw.New(c)
	for i, row := range rows {
		for j, panel := range row {
			panel.Draw(tiles.At(whole, j, i))
		}
	}
	_, err := c.WriteTo(b)
	return err
}

// section is one row of panels.
type section struct {
	results []measure.Result // of different lengths
	lines   []line
}

// line is a contender over the lengths: base-2 logarithms of bytes and base-10 logarithms
// of microseconds, since gonum's logarithmic axes leave empty space beside a long label.
type line struct {
	name       string
	yardstick  string // its name, "" for an algorithm
	times, gbs plotter.XYs
}

// sections returns the sections in order, without those that have no lengths or no
// measurements.
func sections(results []measure.Result) (all []*section) {
	index := map[measure.Section]*section{}
	for _, r := range results {
		measured := slices.ContainsFunc(r.Rows, func(row measure.Row) bool { return row.Calls > 0 })
		if r.Bytes == 0 || !measured {
			continue
		}
		s := index[r.Section()]
		if s == nil {
			s = &section{}
			index[r.Section()] = s
			all = append(all, s)
		}
		s.results = append(s.results, r)
		for _, row := range r.Rows {
			if row.Calls > 0 {
				s.add(r.Bytes, row)
			}
		}
	}
	return all
}

func (s *section) add(bytes int, row measure.Row) {
	l := line{name: row.Name()}
	if row.Library == measure.Yardstick {
		l.yardstick, l.name = row.Entry, yardsticks[row.Entry].name
	}
	i := 0
	for i < len(s.lines) && (s.lines[i].name != l.name || s.lines[i].yardstick != l.yardstick) {
		i++
	}
	if i == len(s.lines) {
		s.lines = append(s.lines, l)
	}
	x := math.Log2(float64(bytes))
	s.lines[i].times = append(s.lines[i].times, plotter.XY{X: x, Y: math.Log10(row.P50)})
	if row.BusBW > 0 {
		s.lines[i].gbs = append(s.lines[i].gbs, plotter.XY{X: x, Y: row.BusBW})
	}
}

// panels draws both panels of a section.
func (s *section) panels() (latency, bandwidth *plot.Plot, err error) {
	latency, bandwidth = s.panel(), s.panel()
	latency.Title.Text, bandwidth.Title.Text = s.results[0].Heading(), " " // the title spans both panels
	latency.Y.Label.Text = "median time"
	latency.Y.Tick.Marker = times{}
	latency.Legend.Top, latency.Legend.Left = true, true
	latency.Legend.XOffs, latency.Legend.YOffs = 3*vg.Millimeter, -2*vg.Millimeter
	latency.Legend.Padding = vg.Millimeter / 2
	bandwidth.Y.Label.Text = "bus bandwidth (GB/s)"
	slices.SortStableFunc(s.lines, func(a, b line) int { return -strings.Compare(a.yardstick, b.yardstick) }) // yardsticks first
	algorithms := 0
	for _, l := range s.lines {
		look := yardsticks[l.yardstick]
		if l.yardstick == "" {
			look = algorithmLook(algorithms)
			algorithms++
		}
		if err := look.add(latency, l.times); err != nil {
			return nil, nil, fmt.Errorf("%s: %w", l.name, err)
		}
		look.addLegend(latency, l.name)
		if len(l.gbs) > 0 {
			if err := look.add(bandwidth, l.gbs); err != nil {
				return nil, nil, fmt.Errorf("%s: %w", l.name, err)
			}
		}
	}
	bandwidth.Y.Min = 0
	bandwidth.Y.Max *= 1.05
	for _, a := range []*plot.Axis{&latency.X, &bandwidth.X, &latency.Y} { // room for the marks
		a.Min -= 0.2
		a.Max += 0.2
	}
	return latency, bandwidth, nil
}

// panel returns an empty panel with an axis of lengths.
func (s *section) panel() *plot.Plot {
	p := plot.New()
	p.X.Label.Text = "bytes of one rank's input"
	p.X.Tick.Marker = lengths{}
	for f, points := range map[*font.Font]float64{
		&p.Title.TextStyle.Font: 12, &p.X.Label.TextStyle.Font: 10, &p.Y.Label.TextStyle.Font: 10,
		&p.X.Tick.Label.Font: 9, &p.Y.Tick.Label.Font: 9, &p.Legend.TextStyle.Font: 10,
	} {
		f.Typeface, f.Variant, f.Size = "Liberation", "Sans", vg.Points(points)
	}
	p.Title.Padding = 2 * vg.Millimeter
	p.X.Padding, p.Y.Padding = 0, 0
	grid := plotter.NewGrid()
	grid.Vertical.Color, grid.Horizontal.Color = lightGrey, lightGrey
	grid.Vertical.Dashes, grid.Horizontal.Dashes = nil, nil
	p.Add(grid)
	return p
}
