package main

import (
	"errors"
	"fmt"
	"image/color"
	"io"
	"math"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgimg"
)

// How a library is drawn: in colours that people with any colour vision
// can distinguish (Okabe and Ito, 2008), and with different shapes. Tuned
// settings are full lines, defaults thin, broken ones.
// Goroutines are black, with rings.
var styles = map[string]struct {
	colour color.RGBA
	shape  draw.GlyphDrawer
	width  vg.Length
}{
	"goccl":   {color.RGBA{213, 94, 0, 255}, draw.CircleGlyph{}, vg.Points(2.5)},
	"openmpi": {color.RGBA{0, 114, 178, 255}, draw.BoxGlyph{}, vg.Points(1.25)},
	"mpich":   {color.RGBA{0, 158, 115, 255}, draw.PyramidGlyph{}, vg.Points(1.25)},
	"gloo":    {color.RGBA{110, 110, 110, 255}, draw.CrossGlyph{}, vg.Points(1.25)},
}

// The colours of second lines of a library, which would look like the first.
var violet, skyBlue = color.RGBA{148, 60, 168, 255}, color.RGBA{86, 180, 233, 255}

// drawPicture draws a panel for each number of ranks, as PNG: the median over the
// bytes, both logarithmic, a line for each contestant.
func drawPicture(w io.Writer, rows []row, about string) error {
	var ranks []int
	span := plotter.XYs{{X: math.Inf(1), Y: math.Inf(1)}, {X: math.Inf(-1), Y: math.Inf(-1)}}
	for _, r := range rows {
		if r.bytes == 0 {
			continue
		}
		if len(ranks) == 0 || ranks[len(ranks)-1] != r.ranks {
			ranks = append(ranks, r.ranks)
		}
		span[0].X, span[1].X = min(span[0].X, float64(r.bytes)), max(span[1].X, float64(r.bytes))
		span[0].Y, span[1].Y = min(span[0].Y, r.p50), max(span[1].Y, r.p50)
	}
	if len(ranks) == 0 {
		return errors.New("nothing to draw: no all-reduce was timed")
	}
	plot.DefaultFont.Variant = "Sans"
	const head, width, height, margin = 1.7 * vg.Centimeter, 9.5 * vg.Centimeter, 9 * vg.Centimeter, 0.3 * vg.Centimeter
	wide := width * vg.Length(len(ranks))
	side := max(5.5*vg.Centimeter, 24.5*vg.Centimeter-wide) // the head does not fit above a single panel
	image := vgimg.NewWith(vgimg.UseWH(wide+side, head+height), vgimg.UseDPI(120))
	canvas := draw.New(image)
	panels := draw.Tiles{Rows: 1, Cols: len(ranks), PadX: 2 * margin, PadLeft: margin, PadBottom: margin}
	style := plot.New().Title.TextStyle
	style.XAlign, style.YAlign = text.XLeft, text.YTop
	for i, line := range []string{
		"All-reduce of float32 (sum, in place): median time of the slowest rank, over the bytes of its vector",
		"Ranks are processes, except goccl's goroutines.  " + about,
	} {
		style.Font.Size = vg.Points(12 - 2*float64(i))
		canvas.FillText(style, vg.Point{X: margin, Y: canvas.Max.Y - margin - vg.Points(17*float64(i))}, line)
	}
	for i, n := range ranks {
		p, err := panel(rows, n, span)
		if err != nil {
			return err
		}
		p.Draw(panels.At(draw.Crop(canvas, 0, -side, 0, -head), i, 0))
	}
	key := legend(contestants(rows))
	key.Draw(draw.Crop(canvas, wide+2*margin, 0, 0, -head-vg.Centimeter))
	_, err := vgimg.PngCanvas{Canvas: image}.WriteTo(w)
	return err
}

// panel draws all contestants with one number of ranks. All panels have the same
// axes; the head of the picture names them, since gonum misplaces labels of logarithmic
// axes.
func panel(rows []row, ranks int, span plotter.XYs) (*plot.Plot, error) {
	p := plot.New()
	p.Title.Text = fmt.Sprintf("%d ranks", ranks)
	p.Title.Padding = vg.Points(4)
	p.X.Scale, p.Y.Scale = plot.LogScale{}, plot.LogScale{}
	p.X.Min, p.X.Max = span[0].X, max(span[1].X, 2*span[0].X)
	p.Y.Min, p.Y.Max = math.Pow(10, math.Floor(math.Log10(span[0].Y))), math.Pow(10, math.Ceil(math.Log10(span[1].Y)+0.01))
	p.X.Tick.Marker, p.Y.Tick.Marker = plot.TickerFunc(sizeTicks), plot.TickerFunc(timeTicks)
	grid := plotter.NewGrid()
	grid.Horizontal.Color, grid.Vertical.Color = color.Gray{215}, color.Gray{215}
	p.Add(grid)
	all := contestants(rows)
	for i := len(all) - 1; i >= 0; i-- { // goccl's last, on top
		c := all[i]
		var points plotter.XYs
		for _, r := range rows {
			if r.contestant == c && r.ranks == ranks && r.bytes > 0 {
				points = append(points, plotter.XY{X: float64(r.bytes), Y: r.p50})
			}
		}
		if len(points) == 0 {
			continue // it failed
		}
		line, dots, err := plotter.NewLinePoints(points)
		if err != nil {
			return nil, err
		}
		line.LineStyle, dots.GlyphStyle = c.style()
		p.Add(line, dots)
	}
	return p, nil
}

// legend explains the lines.
func legend(all []contestant) plot.Legend {
	l := plot.NewLegend()
	l.Top, l.Left = true, true
	l.Padding, l.ThumbnailWidth = vg.Points(3), vg.Points(30)
	for _, c := range all {
		line, dots := &plotter.Line{}, &plotter.Scatter{}
		line.LineStyle, dots.GlyphStyle = c.style()
		l.Add(c.title(), line, dots)
	}
	return l
}

func (c contestant) style() (draw.LineStyle, draw.GlyphStyle) {
	s := styles[c.library]
	line := draw.LineStyle{Color: s.colour, Width: s.width}
	glyph := draw.GlyphStyle{Color: s.colour, Shape: s.shape, Radius: vg.Points(3)}
	switch {
	case c == goroutines:
		line.Color, line.Width = color.Black, vg.Points(1.75)
		glyph.Color, glyph.Shape = color.Black, draw.RingGlyph{}
	case c == alloc:
		line.Color, glyph.Color = violet, violet
	case c.entry == "eager":
		line.Color, glyph.Color = skyBlue, skyBlue
	case c.entry == "default":
		line.Width = vg.Points(0.8)
		line.Dashes = []vg.Length{vg.Points(4), vg.Points(3)}
		glyph.Radius = vg.Points(2)
	}
	return line, glyph
}

// sizeTicks marks powers of 4 and names every third of them.
func sizeTicks(low, high float64) (ticks []plot.Tick) {
	for i, bytes := 0, 4; float64(bytes) <= high; i, bytes = i+1, bytes*4 {
		if float64(bytes) < low {
			continue
		}
		tick := plot.Tick{Value: float64(bytes)}
		if i%3 == 0 {
			tick.Label = formatSize(bytes)
		}
		ticks = append(ticks, tick)
	}
	return ticks
}

// timeTicks marks powers of 10, from microseconds.
func timeTicks(low, high float64) (ticks []plot.Tick) {
	for us := 0.001; us <= high*1.001; us *= 10 {
		if us < low*0.999 {
			continue
		}
		label := fmt.Sprintf("%.3g µs", us)
		switch {
		case us > 0.999e6:
			label = fmt.Sprintf("%.3g s", us/1e6)
		case us > 0.999e3:
			label = fmt.Sprintf("%.3g ms", us/1e3)
		}
		ticks = append(ticks, plot.Tick{Value: us, Label: label})
	}
	return ticks
}
