package pages

import (
	"context"
	"errors"
	"fmt"
	"html/template"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/flipmill/flipmill/pkg/dataset"
	"github.com/flipmill/flipmill/pkg/draw"
	"github.com/flipmill/flipmill/pkg/puzzle"
	"github.com/flipmill/flipmill/pkg/queue"
	"github.com/flipmill/flipmill/pkg/tally"
	"github.com/flipmill/flipmill/pkg/view"
)

// mostRows is how many boards a page lists, mostCells the most cells of one that is
// drawn there.
const (
	mostRows  = 24
	mostCells = 1024
)

// boardsData is a page of boards.
type boardsData struct {
	Job      string
	Statuses []string
	Asked    struct{ Status, Moves, From string } // as in the address
	Rows     []boardCard
	Next     string // address of what follows; empty if that is nothing
}

// boardCard is a board in a list.
type boardCard struct {
	dataset.Row
	Path    string
	Drawn   template.HTML // empty where there is nothing to draw
	Presses string        // how many are needed, in words; empty where that is not known
}

// boardsPage lists boards that meet a filter.
func (s *Site) boardsPage(ctx context.Context, r *http.Request) (*content, error) {
	standing, err := s.standing(ctx, r)
	if err != nil {
		return nil, err
	}
	job := standing.Job.ID
	d := &boardsData{Job: job, Statuses: []string{
		puzzle.Solved.String(), puzzle.Impossible.String(), puzzle.Unproven.String(), dataset.Rejected,
	}}
	want, err := d.filter(r.URL.Query())
	if err != nil {
		return nil, failure{http.StatusBadRequest, err}
	}
	rows, err := s.find(r.Context(), standing, want, mostRows+1)
	if err != nil {
		return nil, err
	}
	if len(rows) > mostRows {
		query := url.Values{"from": {strconv.FormatInt(rows[mostRows].Index, 10)}}
		for name, value := range map[string]string{"status": d.Asked.Status, "moves": d.Asked.Moves} {
			if value != "" {
				query.Set(name, value)
			}
		}
		d.Next = "/jobs/" + job + "/boards?" + query.Encode()
		rows = rows[:mostRows]
	}
	for _, row := range rows {
		card := boardCard{Row: row, Path: fmt.Sprintf("/jobs/%s/boards/%d", job, row.Index)}
		if row.MinMoves != nil {
			card.Presses = view.Times(int(*row.MinMoves), "press", "presses")
		}
		if row.Reason == nil && row.Board != nil && row.Rows != nil && row.Cols != nil && *row.Rows**row.Cols <= mostCells {
			b := draw.Board{Rows: int(*row.Rows), Cols: int(*row.Cols), Cells: *row.Board}
			if row.Solution != nil {
				b.Presses = *row.Solution
			}
			card.Drawn = b.SVG()
		}
		d.Rows = append(d.Rows, card)
	}
	return &content{Template: "boards", Title: "Boards of " + job, Trail: []crumb{{"Jobs", "/"}, {job, "/jobs/" + job}}, Data: d}, nil
}

// filter reads what is asked for.
func (d *boardsData) filter(query url.Values) (want dataset.Filter, err error) {
	number := func(name string) *int64 {
		text := strings.TrimSpace(query.Get(name))
		if text == "" {
			return nil
		}
		n, parseErr := strconv.ParseInt(text, 10, 64)
		if parseErr != nil || n < 0 {
			err = fmt.Errorf("%s=%s: want a number that is not negative", name, text)
		}
		return &n
	}
	want.Moves = number("moves")
	if from := number("from"); from != nil {
		want.From = *from
	}
	want.Status = query.Get("status")
	for _, known := range d.Statuses {
		if want.Status == known {
			d.Asked.Status = known
		}
	}
	if want.Status != d.Asked.Status {
		err = fmt.Errorf("status=%s: want one of %s", want.Status, strings.Join(d.Statuses, ", "))
	}
	d.Asked.Moves, d.Asked.From = query.Get("moves"), query.Get("from")
	return want, err
}

// find returns the first rows of a job that meet a filter. It looks for them as long
// as somebody waits, which is ctx, but not for too long.
func (s *Site) find(ctx context.Context, standing *queue.Standing, want dataset.Filter, most int) ([]dataset.Row, error) {
	d, err := s.set(standing)
	if errors.Is(err, errElsewhere) {
		return nil, failure{http.StatusNotFound, err}
	}
	if err != nil {
		return nil, err
	}
	if len(d.spec.Columns) == 0 && want.Status != dataset.Rejected {
		return nil, failure{http.StatusNotFound, errors.New("the job was submitted with --columns none: its dataset has no boards")}
	}
	ctx, cancel := context.WithTimeout(ctx, searchTime)
	defer cancel()
	select {
	case s.searches <- struct{}{}:
		defer func() { <-s.searches }()
	case <-ctx.Done():
		return nil, errors.New("too many look for boards at the moment")
	}
	var rows []dataset.Row
	for row, err := range d.reader.Find(ctx, want) {
		if ctx.Err() != nil {
			return nil, fmt.Errorf("such boards are not found within %v: flipmill show has more patience", searchTime)
		}
		if err != nil {
			s.forget(standing.Job.ID) // it may have been compacted
			return nil, err
		}
		if rows = append(rows, row); len(rows) == most {
			break
		}
	}
	return rows, nil
}

// boardData is the page of a board.
type boardData struct {
	Job string
	dataset.Row
	Rule, Target     string
	Drawn            template.HTML
	Missing          string // what keeps the board from being drawn
	Step, Steps      int
	Presses          []press
	Told             string // the step in words
	Before, After    string // addresses of the steps around; empty at the ends
	First, Last      string // likewise
	Previous, Follow string // of the boards around
}

// press is one of a solution, which are made row by row.
type press struct {
	Nth, Row, Column int // from 1 on
	Path             string
	Made, Next       bool
}

// boardPage shows a board with its solution, at one of its steps.
func (s *Site) boardPage(ctx context.Context, r *http.Request) (*content, error) {
	standing, err := s.standing(ctx, r)
	if err != nil {
		return nil, err
	}
	job, spec := standing.Job.ID, standing.Job.Spec
	index, err := strconv.ParseInt(r.PathValue("index"), 10, 64)
	if err != nil || index < 0 {
		return nil, failure{http.StatusNotFound, fmt.Errorf("%q is no puzzle_index", r.PathValue("index"))}
	}
	row, err := s.record(r.Context(), standing, index)
	if err != nil {
		return nil, err
	}
	d := &boardData{Job: job, Row: row, Rule: spec.Rule.String(), Target: spec.Target.String()}
	path := fmt.Sprintf("/jobs/%s/boards/", job)
	if d.Follow = path + strconv.FormatInt(index+1, 10); index > 0 {
		d.Previous = path + strconv.FormatInt(index-1, 10)
	}
	if d.Reason == nil {
		if err := d.steps(spec.Rule, r.URL.Query().Get("step")); err != nil {
			return nil, err
		}
	}
	return &content{
		Template: "board", Title: fmt.Sprintf("Board %d of %s", index, job), Data: d,
		Trail: []crumb{{"Jobs", "/"}, {job, "/jobs/" + job}, {"Boards", "/jobs/" + job + "/boards"}},
	}, nil
}

// record returns a record by its index. The latest are kept: who looks at a board
// looks at its steps.
func (s *Site) record(ctx context.Context, standing *queue.Standing, index int64) (dataset.Row, error) {
	key := found{job: standing.Job.ID, index: index}
	if d, err := s.set(standing); err == nil {
		key.counts = d.counts
	}
	s.mu.Lock()
	row, known := s.rows[key]
	s.mu.Unlock()
	if known {
		return row, nil
	}
	rows, err := s.find(ctx, standing, dataset.Filter{Index: &index}, 1)
	if err != nil {
		return row, err
	}
	if len(rows) == 0 {
		return row, failure{http.StatusNotFound, fmt.Errorf("there is no record %d among what is committed", index)}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.rows) >= mostKept {
		clear(s.rows)
	}
	s.rows[key] = rows[0]
	return rows[0], nil
}

// mostKept is the most records that are kept.
const mostKept = 64

// found says which record was found, and in which state of a dataset.
type found struct {
	job    string
	index  int64
	counts *tally.Tally
}

// steps draws the board after some of its presses, by the definition of the rule.
func (d *boardData) steps(rule puzzle.Rule, asked string) error {
	switch {
	case d.Board == nil:
		d.Missing = "The dataset has no column board."
		return nil
	case d.Rows == nil || d.Cols == nil:
		d.Missing = "The dataset has no columns rows and cols."
		return nil
	}
	size := puzzle.Size{Rows: int(*d.Rows), Cols: int(*d.Cols)}
	now, err := puzzle.ParseText(size, *d.Board)
	if err != nil {
		return fmt.Errorf("board %d: %w", d.Index, err)
	}
	solution := ""
	if d.Solution != nil {
		solution = *d.Solution
	}
	d.Steps = strings.Count(solution, "1")
	if d.Step, err = strconv.Atoi(asked); asked != "" && (err != nil || d.Step < 0 || d.Step > d.Steps) {
		return failure{http.StatusNotFound, fmt.Errorf("step %s: the board has steps 0 to %d", asked, d.Steps)}
	}
	path := fmt.Sprintf("/jobs/%s/boards/%d?step=", d.Job, d.Index)
	made := puzzle.NewRun(size, 1)
	for cell := range len(solution) {
		if solution[cell] != '1' {
			continue
		}
		p := press{Nth: len(d.Presses) + 1, Row: cell/size.Cols + 1, Column: cell%size.Cols + 1}
		p.Path = path + strconv.Itoa(p.Nth)
		if p.Made, p.Next = p.Nth <= d.Step, p.Nth == d.Step+1; p.Made {
			made.SetCell(0, p.Row-1, p.Column-1)
		}
		d.Presses = append(d.Presses, p)
	}
	rule.Press(now, made)
	cells := string(now.AppendText(nil, 0))
	if d.Step > 0 {
		d.First, d.Before = path+"0", path+strconv.Itoa(d.Step-1)
	}
	if d.Step < d.Steps {
		d.After, d.Last = path+strconv.Itoa(d.Step+1), path+strconv.Itoa(d.Steps)
	}
	d.Told = d.tell(cells)
	d.Drawn = draw.Board{
		Name: fmt.Sprintf("Board of %d rows and %d columns. %s", size.Rows, size.Cols, d.Told),
		Rows: size.Rows, Cols: size.Cols, Cells: cells, Presses: solution, Made: d.Step, Next: true,
	}.SVG()
	return nil
}

// tell says what a board looks like at its step.
func (d *boardData) tell(cells string) string {
	ones := strings.Count(cells, "1")
	text := fmt.Sprintf("%s of %s cells %s 1.", view.Thousands(int64(ones)), view.Thousands(int64(len(cells))), view.Plural(ones, "is", "are"))
	switch {
	case d.Solution == nil:
		return text
	case d.Step == 0:
		return fmt.Sprintf("Before the first of %d presses: %s", d.Steps, text)
	}
	p := d.Presses[d.Step-1]
	return fmt.Sprintf("After press %d of %d, at row %d, column %d: %s", d.Step, d.Steps, p.Row, p.Column, text)
}
