// Check histories of a warehouse by porcupine: check [-pictures FOLDER] FILE…
//
// A file is a history. Its first line says which model it is of: {"model": "rows"}. Each other line is an
// operation, with the times of its call and of its answer. An operation without an answer is open: it takes
// effect at any time after its call, or never. For each file a line goes to the standard output, with the
// result: Ok, Illegal, or Unknown if the search took longer than an hour. With a folder for pictures, an illegal
// history is drawn there as a page.
package main

import (
	"bufio"
	"encoding/json"
	"flag"
	"fmt"
	"log"
	"math"
	"os"
	"path/filepath"
	"time"

	"github.com/anishathalye/porcupine"
)

const patience = time.Hour

// operation is a line of a history. Since is the earliest time that its answer may be of, if that is documented
// to be before the call.
type operation struct {
	Client int             `json:"client"`
	Do     string          `json:"do"`
	Call   int64           `json:"call"`
	Return int64           `json:"return"`
	Since  *int64          `json:"since"`
	Ids    []int           `json:"ids"`
	Name   string          `json:"name"`
	New    string          `json:"new"`
	Mark   string          `json:"mark"`
	Change map[int]int     `json:"change"`
	Answer json.RawMessage `json:"answer"`

	key string
}

func (o *operation) isOpen() bool { return o.Answer == nil }

func (o *operation) String() string {
	answer := "…"
	if !o.isOpen() {
		answer = string(o.Answer)
	}
	switch o.Do {
	case "append", "overwrite":
		return fmt.Sprintf("%s %v: %s", o.Do, o.Ids, answer)
	case "create":
		return fmt.Sprintf("create %s as %s: %s", o.Name, o.Mark, answer)
	case "rename":
		return fmt.Sprintf("rename %s to %s: %s", o.Name, o.New, answer)
	case "transfer", "deposit":
		return fmt.Sprintf("%s %v: %s", o.Do, o.Change, answer)
	}
	return fmt.Sprintf("%s %s: %s", o.Do, o.Name, answer)
}

// judgement is what goes to the standard output for a file.
type judgement struct {
	File       string  `json:"file"`
	Result     string  `json:"result"`
	Operations int     `json:"operations"`
	Open       int     `json:"open"`
	MovedBack  bool    `json:"moved_back"`
	Seconds    float64 `json:"seconds"`
}

func main() {
	log.SetFlags(0)
	pictures := flag.String("pictures", "", "draw each illegal history in this `folder`")
	flag.Parse()
	output := json.NewEncoder(os.Stdout)
	for _, file := range flag.Args() {
		model, operations, err := readHistory(file)
		if err != nil {
			log.Fatalf("%s: %v", file, err)
		}
		judged, info := judge(model, operations)
		judged.File = file
		if judged.Result == string(porcupine.Illegal) && *pictures != "" {
			picture := filepath.Join(*pictures, filepath.Base(file)+".html")
			if err := porcupine.VisualizePath(model, info, picture); err != nil {
				log.Fatal(err)
			}
		}
		if err := output.Encode(judged); err != nil {
			log.Fatal(err)
		}
	}
}

// judge checks a history; if it does not fit, once more with the answers of cuts from as early as they may be.
func judge(model porcupine.Model, operations []*operation) (judgement, porcupine.LinearizationInfo) {
	judged, begun := judgement{Operations: len(operations)}, time.Now()
	for _, each := range operations {
		if each.isOpen() {
			judged.Open++
		}
	}
	result, info := porcupine.CheckOperationsVerbose(model, history(operations, false), patience)
	if result == porcupine.Illegal && hasCuts(operations) {
		result, info = porcupine.CheckOperationsVerbose(model, history(operations, true), patience)
		judged.MovedBack = result == porcupine.Ok
	}
	judged.Result, judged.Seconds = string(result), time.Since(begun).Seconds()
	return judged, info
}

func hasCuts(operations []*operation) bool {
	for _, each := range operations {
		if each.Since != nil {
			return true
		}
	}
	return false
}

func history(operations []*operation, movedBack bool) []porcupine.Operation {
	found := make([]porcupine.Operation, len(operations))
	for at, each := range operations {
		call, end := each.Call, each.Return
		if movedBack && each.Since != nil {
			call = *each.Since
		}
		if each.isOpen() {
			end = math.MaxInt64
		}
		found[at] = porcupine.Operation{ClientId: each.Client, Input: each, Output: each, Call: call, Return: end}
	}
	return found
}

func readHistory(file string) (model porcupine.Model, operations []*operation, err error) {
	source, err := os.Open(file)
	if err != nil {
		return model, nil, err
	}
	defer source.Close()
	lines := bufio.NewScanner(source)
	lines.Buffer(nil, 1<<24)
	if !lines.Scan() {
		return model, nil, fmt.Errorf("there is no first line: %v", lines.Err())
	}
	var first struct {
		Model string `json:"model"`
	}
	if err = json.Unmarshal(lines.Bytes(), &first); err != nil {
		return model, nil, err
	}
	make, known := models[first.Model]
	if !known {
		return model, nil, fmt.Errorf("there is no model %q", first.Model)
	}
	for lines.Scan() {
		each := &operation{}
		if err = json.Unmarshal(lines.Bytes(), each); err != nil {
			return model, nil, err
		}
		if first.Model == "rows" {
			keyOfRows(each)
		}
		operations = append(operations, each)
	}
	return make, operations, lines.Err()
}
