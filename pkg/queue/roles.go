package queue

import (
	"slices"
	"strings"
)

// Role is what a connection is for. A broker can be told what each role may do:
// deployments/nats/roles.conf is made from the grants below.
type Role string

// The roles. Their names are part of inboxes, do not change.
const (
	Producer   Role = "producer"   // submit
	Worker     Role = "worker"     // worker
	Aggregator Role = "aggregator" // aggregator
	Observer   Role = "observer"   // verbs that only look
	Operator   Role = "operator"   // setup, and verbs that give orders
	Doctor     Role = "doctor"     // doctor, which looks with the permissions of any other
)

// Roles returns the roles that permissions are given to.
func Roles() []Role { return []Role{Producer, Worker, Aggregator, Observer, Operator} }

// inbox is where the answers to a role's requests go. Each role has its own, so
// that none can listen to what others are told.
func (r Role) inbox() string { return "_INBOX." + string(r) }

// inboxes returns the subjects that a role listens to: its own answers, those to
// doctor, and an operator's also those to the verbs that only look, all of which he
// could ask for himself.
func (r Role) inboxes() []string {
	roles := []Role{r, Doctor}
	if r == Operator {
		roles = append(roles, Observer)
	}
	subjects := make([]string, len(roles))
	for i, of := range roles {
		subjects[i] = of.inbox() + ".>"
	}
	return subjects
}

// grant is a subject that a client may publish to, and why it must.
type grant struct{ subject, why string }

// Where requests to JetStream go, by the specification of NATS (ADR-1, ADR-8,
// ADR-31).
const api = "$JS.API."

// userInfo is asked for what the broker knows of the asker.
const userInfo = "$SYS.REQ.USER.INFO"

// look is what every role may ask: how things are, and what the records say.
func look() []grant {
	return []grant{
		{userInfo, "which permissions these are"},
		{api + "INFO", "limits of the account"},
		{api + "STREAM.INFO." + tasksStream, "how the streams are"},
		{api + "STREAM.INFO." + resultsStream, ""},
		{api + "STREAM.INFO." + bucketStream, ""},
		{api + "CONSUMER.INFO." + tasksStream + ".*", "how the lanes are"},
		{api + "STREAM.MSG.GET." + bucketStream, "read a record"},
		{api + "CONSUMER.CREATE." + bucketStream + ".>", "follow the records"},
		{api + "CONSUMER.DELETE." + bucketStream + ".*", ""},
		{api + "CONSUMER.MSG.NEXT." + bucketStream + ".*", ""},
	}
}

// grants returns what a role may publish to: the least that its verbs need.
func (r Role) grants() []grant {
	switch r {
	case Producer:
		return append(look(),
			grant{keyPrefix + "*", "write job records, whose keys are one word"},
			grant{taskPrefix + ".*.*.*", "publish tasks"})
	case Worker:
		return append(look(),
			grant{api + "CONSUMER.MSG.NEXT." + tasksStream + ".*", "take tasks"},
			grant{"$JS.ACK." + tasksStream + ".>", "settle them"},
			grant{resultPrefix + ".*.*.*.*", "publish results"},
			grant{keyPrefix + "*" + troubleSuffix, "write down what went wrong with a task"})
	case Aggregator:
		return append(look(),
			grant{keyPrefix + "*" + ledgerSuffix, "write ledgers"},
			grant{keyPrefix + "*", "put back job records that the broker has lost"},
			grant{api + "DIRECT.GET." + resultsStream, "read a result"},
			grant{api + "STREAM.MSG.GET." + resultsStream, "make sure that it is gone"},
			grant{api + "CONSUMER.CREATE." + resultsStream + ".>", "follow the results"},
			grant{api + "CONSUMER.DELETE." + resultsStream + ".*", ""},
			grant{api + "CONSUMER.MSG.NEXT." + resultsStream + ".*", ""},
			grant{api + "STREAM.PURGE." + resultsStream, "remove what is committed or cancelled"},
			grant{api + "STREAM.PURGE." + tasksStream, ""},
			grant{api + "STREAM.MSG.GET." + tasksStream, "find the tasks of a job, for its page"})
	case Observer:
		return append(look(),
			grant{api + "STREAM.MSG.GET." + tasksStream, "find the tasks of a job"},
			grant{api + "CONSUMER.CREATE." + resultsStream + ".>", "find its results"},
			grant{api + "CONSUMER.DELETE." + resultsStream + ".*", ""},
			grant{api + "CONSUMER.MSG.NEXT." + resultsStream + ".*", ""})
	case Operator: // who also looks how it comes out
		return append(Observer.grants(),
			grant{api + "STREAM.CREATE." + tasksStream, "set up"},
			grant{api + "STREAM.CREATE." + resultsStream, ""},
			grant{api + "STREAM.CREATE." + bucketStream, ""},
			grant{api + "STREAM.UPDATE." + tasksStream, ""},
			grant{api + "STREAM.UPDATE." + resultsStream, ""},
			grant{api + "STREAM.UPDATE." + bucketStream, ""},
			grant{api + "CONSUMER.CREATE." + tasksStream + ".>", ""},
			grant{keyPrefix + "*" + controlSuffix, "give orders to jobs"},
			grant{keyPrefix + "*", "drive a job again"},
			grant{taskPrefix + ".*.*.*", ""},
			grant{api + "STREAM.PURGE." + tasksStream, "remove the tasks of a cancelled job"})
	}
	return look()
}

// permissions is what a broker lets a client do. Without allow, all but deny.
type permissions struct {
	Publish, Subscribe *struct{ Allow, Deny []string }
}

// lack returns what of a role's work the permissions do not let be done.
func (p *permissions) lack(r Role) (missing []string) {
	if p == nil {
		return nil
	}
	if s := p.Publish; s != nil {
		for _, g := range r.grants() {
			if !allowed(g.subject, s.Allow, s.Deny) {
				missing = append(missing, "publish "+g.subject)
			}
		}
	}
	if s := p.Subscribe; s != nil {
		for _, inbox := range r.inboxes() {
			if !allowed(inbox, s.Allow, s.Deny) {
				missing = append(missing, "subscribe "+inbox)
			}
		}
	}
	return missing
}

func allowed(subject string, allow, deny []string) bool {
	return (allow == nil || slices.ContainsFunc(allow, func(a string) bool { return covers(a, subject) })) &&
		!slices.ContainsFunc(deny, func(d string) bool { return covers(d, subject) || covers(subject, d) })
}

// covers reports whether a pattern stands for every subject that another does.
func covers(pattern, other string) bool {
	p, o := strings.Split(pattern, "."), strings.Split(other, ".")
	for i, token := range p {
		switch {
		case token == ">":
			return len(o) > i
		case i >= len(o), token != o[i] && (token != "*" || o[i] == ">"):
			return false
		}
	}
	return len(p) == len(o)
}
