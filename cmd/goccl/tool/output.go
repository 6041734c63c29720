package tool

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
)

// output is a file that a command writes. The path "" stands for none.
type output struct {
	path  string
	write func(path string) error
}

// writeFiles writes the files and prints their names. An error does not stop it from writing the
// others.
func writeFiles(stdout io.Writer, files ...output) error {
	var all []error
	for _, f := range files {
		if f.path == "" {
			continue
		}
		err := f.write(f.path)
		if err == nil {
			_, err = fmt.Fprintf(stdout, "written: %s\n", f.path)
		}
		all = append(all, err)
	}
	return errors.Join(all...)
}

// checkWritable returns an error if a file cannot be written later. It changes no file, and leaves
// none that did not exist. The path "" stands for none.
func checkWritable(path string) error {
	if path == "" {
		return nil
	}

	_, missing := os.Stat(path)
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE, 0o666)
	if err != nil {
		return err
	}
	err = f.Close()
	if errors.Is(missing, fs.ErrNotExist) {
		err = errors.Join(err, os.Remove(path))
	}
	return err
}

// show prints a result as JSON, or as text.
func show(w io.Writer, asJSON bool, result any, text func(io.Writer) error) error {
	if !asJSON {
		return text(w)
	}
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(result)
}
