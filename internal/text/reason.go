package text

// Reason returns the text of err without the package and the operation that it is about. Errors
// that have these as values have a method Reason.
func Reason(err error) string {
	if e, ok := err.(interface{ Reason() string }); ok { //nolint:errorlint // a wrapped one has words before it
		return e.Reason()
	}
	return err.Error()
}
