package sweep

import (
	"bytes"
	"cmp"
	_ "embed"
	"html/template"

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
		Settings []Held
		Sections []reportSection
		Wrong    int // rows
	}{File: f, Document: d, Settings: settings}
	index := map[measure.Section]int{}
	for _, r := range d.Results {
		i, known := index[r.Section()]
		if !known {
			i = len(about.Sections)
			index[r.Section()] = i
			about.Sections = append(about.Sections, reportSection{})
		}
		about.Sections[i].Results = append(about.Sections[i].Results, r)
		for _, row := range r.Rows {
			if row.Errors > 0 {
				about.Wrong++
			}
		}
	}
	for i := range about.Sections {
		about.Sections[i].fill(d.Config.File)
	}
	var b bytes.Buffer
	if err := reportTemplate.Execute(&b, about); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}

// reportSection is one section of the results.
type reportSection struct {
	Results []measure.Result // a row each
	Title   string
	Picture template.HTML // an SVG element, or ""
	Entries []string
}

// fill sets what follows from the results. configs are the files of all of them.
func (s *reportSection) fill(configs string) {
	first := s.Results[0]
	s.Title = first.Heading()
	if first.Config != "" && first.Config != configs {
		s.Title += ", " + first.Config
	}
	for _, row := range first.Algorithms() {
		s.Entries = append(s.Entries, cmp.Or(row.Name(), row.Library))
	}
	if picture, err := chart.SVG(s.Results); err == nil { // else there are no lengths, or all entries are rejected
		_, element, _ := bytes.Cut(picture, []byte("?>")) // HTML has no XML declarations
		s.Picture = template.HTML(element)
	}
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
