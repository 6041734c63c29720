// Package svg writes pictures in SVG, for packages chart and timeline.
//
// # Model
//
// A picture is a text of elements that grows. A package adds its elements in SVG, so that what SVG
// can do needs no name here.
//
// # Failure
//
// No function fails: a picture is text in memory.
package svg

import (
	"fmt"
	"html"
	"strings"
)

// Picture is a picture that grows. Its zero value is empty.
type Picture struct{ body strings.Builder }

// Add adds elements, in SVG.
func (p *Picture) Add(format string, args ...any) { fmt.Fprintf(&p.body, format+"\n", args...) }

// Text adds a text with its lower left at a position, and attributes such as `fill="grey"`, or "".
func (p *Picture) Text(x, y float64, attributes, text string) {
	if attributes != "" {
		attributes = " " + attributes
	}
	p.Add(`<text x="%.6g" y="%.6g"%s>%s</text>`, x, y, attributes, html.EscapeString(text))
}

// Document returns the picture as a document of its own, on a white ground.
func (p *Picture) Document(width, height float64) string {
	return fmt.Sprintf(`<svg xmlns="http://www.w3.org/2000/svg" width="%.6g" height="%.6[2]g" viewBox="0 0 %.6[1]g %.6[2]g" font-family="sans-serif" font-size="12">`+
		"\n"+`<rect width="100%%" height="100%%" fill="white"/>`+"\n", width, height) + p.body.String() + "</svg>\n"
}
