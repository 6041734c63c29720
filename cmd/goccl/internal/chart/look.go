package chart

import (
	"image/color"
	"slices"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"github.com/goccl/goccl/cmd/goccl/internal/measure"
)

// look is the appearance of a line.
type look struct {
	name   string // of a yardstick
	color  color.Color
	width  vg.Length
	dashes []vg.Length
	mark   draw.GlyphDrawer // nil: none
}

var (
	lightGrey = color.Gray{220}
	grey      = color.Gray{120}
	dashed    = []vg.Length{vg.Points(5), vg.Points(3)}
	dotted    = []vg.Length{vg.Points(1), vg.Points(2)}
)

var yardsticks = map[string]look{
	measure.OwnCopy:    {"own copy", grey, vg.Points(1.2), dashed, nil},
	measure.PeerCopy:   {"peer copy", grey, vg.Points(1.2), nil, nil},
	measure.Floor:      {"floor", grey, vg.Points(0.6), dashed, nil},
	measure.Barrier:    {"barrier", grey, vg.Points(1.2), dotted, nil},
	measure.CoreToCore: {"core to core", grey, vg.Points(0.6), dotted, nil},
}

var (
	colors = []color.Color{
		color.RGBA{0x00, 0x72, 0xB2, 0xFF}, // blue
		color.RGBA{0xD5, 0x5E, 0x00, 0xFF}, // vermilion
		color.RGBA{0x00, 0x9E, 0x73, 0xFF}, // bluish green
		color.RGBA{0xCC, 0x79, 0xA7, 0xFF}, // reddish purple
		color.RGBA{0xE6, 0x9F, 0x00, 0xFF}, // orange
		color.RGBA{0x56, 0xB4, 0xE9, 0xFF}, // sky blue
		color.Black,
	}
	marks = []draw.GlyphDrawer{
		draw.CircleGlyph{}, draw.SquareGlyph{}, draw.PyramidGlyph{}, draw.CrossGlyph{}, draw.RingGlyph{}, draw.BoxGlyph{}, draw.TriangleGlyph{}, draw.PlusGlyph{},
	}
)

// algorithmLook returns the look of the i-th algorithm. The numbers of colours and
// marks are coprime, so dozens of looks differ.
func algorithmLook(i int) look {
	return look{color: colors[i%len(colors)], width: vg.Points(1.6), mark: marks[i%len(marks)]}
}

// add draws a line.
func (k look) add(p *plot.Plot, points plotter.XYs) error {
	l, marks, err := plotter.NewLinePoints(points)
	if err != nil {
		return err
	}
	l.LineStyle, marks.GlyphStyle = k.line(), k.glyph()
	p.Add(l)
	if k.mark != nil || len(points) == 1 {
		p.Add(marks)
	}
	return nil
}

// addBand fills the space between two lines. The more bands there are, the fainter is each, since
// they overlap.
func (k look) addBand(p *plot.Plot, from, to plotter.XYs, bands int) error {
	ring := slices.Clone(to)
	slices.Reverse(ring)
	band, err := plotter.NewPolygon(append(slices.Clone(from), ring...))
	if err != nil {
		return err
	}
	r, g, b, _ := k.color.RGBA()
	band.Color = color.NRGBA{uint8(r >> 8), uint8(g >> 8), uint8(b >> 8), uint8(min(0x28, 0x80/bands))}
	band.Width = 0
	p.Add(band)
	return nil
}

func (k look) line() draw.LineStyle {
	return draw.LineStyle{Color: k.color, Width: k.width, Dashes: k.dashes}
}

// glyph returns the mark; a line of one point needs one to be visible.
func (k look) glyph() draw.GlyphStyle {
	mark := k.mark
	if mark == nil {
		mark = draw.PlusGlyph{}
	}
	return draw.GlyphStyle{Color: k.color, Radius: vg.Points(3), Shape: mark}
}

func (k look) addLegend(l *plot.Legend, name string) {
	thumbnails := []plot.Thumbnailer{&plotter.Line{LineStyle: k.line()}}
	if k.mark != nil {
		thumbnails = append(thumbnails, &plotter.Scatter{GlyphStyle: k.glyph()})
	}
	l.Add(name, thumbnails...)
}
