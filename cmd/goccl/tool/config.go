package tool

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"

	"github.com/goccl/goccl/ccl/config"
	"github.com/goccl/goccl/cmd/goccl/internal/measure"
)

// configCommand is `goccl config`.
type configCommand struct {
	Check  checkCommand  `cmd:"" help:"Show all mistakes of configuration files, and what is probably unintended; the exit status is 1 for mistakes."`
	Schema schemaCommand `cmd:"" help:"Print the JSON schema of ccl.yaml, by which editors complete and check it."`
}

// checkCommand is `goccl config check`.
type checkCommand struct {
	Files  []string `arg:"" optional:"" name:"file" help:"Configuration files; -: the standard input. By default what a program finds: $$GOCCL_CONFIG, ./ccl.yaml, the built-in one."`
	Config []string `placeholder:"FILE" help:"Configuration files, like the arguments."`
}

// Run runs the command.
func (c *checkCommand) Run(stdout io.Writer) error { return c.check(os.Stdin, stdout) }

func (c *checkCommand) check(stdin io.Reader, stdout io.Writer) error {
	faulty := 0
	files := orElse(slices.Concat(c.Config, c.Files), "")
	for _, path := range files {
		checked := checkFile(path, stdin)
		result := checked.File + ": ok"
		if checked.Err != nil {
			faulty++
			result = checked.Err.Error()
		}
		if _, err := fmt.Fprintln(stdout, result); err != nil {
			return err
		}

		for _, w := range checked.Warnings {
			if _, err := fmt.Fprintf(stdout, "%s: warning: %s\n", w.Origin, w.Message); err != nil {
				return err
			}
		}
	}

	switch {
	case faulty == 0:
		return nil
	case len(files) == 1:
		return errors.New("the file cannot be used")
	}
	return fmt.Errorf("%d of %d files cannot be used", faulty, len(files))
}

// checkFile checks the file at path; -: what stdin has.
func checkFile(path string, stdin io.Reader) config.Checked {
	if path == "-" {
		return config.CheckReader("standard input", stdin, nil)
	}
	return config.Check(path, nil)
}

// schemaCommand is `goccl config schema`.
type schemaCommand struct{}

// Run runs the command.
func (*schemaCommand) Run(stdout io.Writer) error {
	schema, err := config.Schema(nil)
	if err != nil {
		return err
	}
	_, err = stdout.Write(schema)
	return err
}

// loadConfig loads the configuration at path, or if that is empty the one that
// programs find.
func loadConfig(path string) (cfg *config.Config, found measure.Config, err error) {
	if path != "" {
		found.FoundBy = "--config"
		if cfg, err = config.Load(path); err == nil {
			cfg, err = cfg.WithEnvironment(os.Getenv)
		}
	} else if cfg, err = config.Find(); err == nil {
		switch {
		case os.Getenv("GOCCL_CONFIG") != "":
			found.FoundBy = "GOCCL_CONFIG"

		case cfg.File() == config.Default().File():
			found.FoundBy = "built in"
		default:
			found.FoundBy = "working directory"
		}
	}
	if err != nil {
		return nil, found, err
	}
	found.File = cfg.File()
	return cfg, found, nil
}
