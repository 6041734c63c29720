package sweep

import (
	"bytes"
	_ "embed"
	"html/template"
	"slices"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/ccl/config"
	"github.com/goccl/goccl/cmd/goccl/internal/chart"
	"github.com/goccl/goccl/cmd/goccl/internal/measure"
)

//go:embed report.html
var page string

var reportTemplate = template.Must(template.New("report").Funcs(template.FuncMap{
	"size":     func(bytes int) string { return ccl.ByteSize(bytes).String() },
	"digits":   measure.Digits,
	"multiple": measure.Multiple,
	"fastest":  fastest,
}).Parse(page))

// Held are the settings that held in a job.
type Held struct {
	Of string // the job
	*config.Settings
}

// Report makes a self-contained HTML document of the results of a sweep: pictures, tables,
// the machine, the settings, and the sweep file.
func Report(f *File, d *measure.Document, settings []Held) ([]byte, error) {
	about := struct {
		*File
		*measure.Document
		Settings  []Held
		Sections  []reportSection
		Across    template.HTML // a picture of several sections, or ""
		WrongRows int
	}{File: f, Document: d, Settings: settings, Across: element(chart.Across(d))}

	for _, section := range measure.Split(d.Results, measure.Result.Section) {
		about.Sections = append(about.Sections, newReportSection(d, section))
	}

	for _, r := range d.Results {
		for _, row := range r.Rows {
			if row.Errors > 0 {
				about.WrongRows++
			}
		}
	}
	var b bytes.Buffer
	if err := reportTemplate.Execute(&b, about); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}

// reportSection is one section of the results.
type reportSection struct {
	Results    []measure.Result // each with a row of every algorithm
	Title      string
	Picture    template.HTML // an SVG element, or ""
	Yardsticks []column      // that were measured
}

// column is a column of a yardstick.
type column struct{ Name, Entry string }

// newReportSection returns the section of some results of a document.
func newReportSection(d *measure.Document, results []measure.Result) reportSection {
	of := *d
	of.Results = results
	s := reportSection{Results: results, Title: d.Heading(results[0]), Picture: element(chart.SVG(&of))}
	for _, y := range []column{
		{"own copy", measure.OwnCopy}, {"peer copy", measure.PeerCopy}, {"floor", measure.Floor}, {"barrier", measure.Barrier}, {"core", measure.CoreToCore},
	} {
		if slices.ContainsFunc(s.Results, func(r measure.Result) bool { return r.Yardstick(y.Entry).Calls > 0 }) {
			s.Yardsticks = append(s.Yardsticks, y)
		}
	}
	return s
}

// element returns a picture as an element of HTML; "" if there was nothing to draw.
func element(picture string, err error) template.HTML {
	if err != nil {
		return ""
	}
	return template.HTML(picture)
}

// fastest returns the least median of the algorithms, 0 if none was measured.
func fastest(r measure.Result) (least float64) {
	for _, a := range r.Algorithms() {
		if a.P50 > 0 && (least == 0 || a.P50 < least) {
			least = a.P50
		}
	}
	return least
}
