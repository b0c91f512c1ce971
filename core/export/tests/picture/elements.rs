//! The elements of a picture, as a reader of XML sees them.

use quick_xml::Reader;
use quick_xml::events::Event;

/// An element: its name, attributes, and the text right behind its beginning.
pub(crate) struct Element {
    pub(crate) tag: String,
    pub(crate) attributes: Vec<(String, String)>,
    pub(crate) text: String,
}

impl Element {
    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        self.attributes.iter().find(|(n, _)| n == name).map(|(_, v)| v.as_str())
    }

    pub(crate) fn is(&self, tag: &str, class: &str) -> bool {
        let classes = self.get("class").unwrap_or("");
        self.tag == tag && classes.split(' ').any(|c| c == class)
    }
}

/// Every element, in order. Fails where the file is no XML.
pub(crate) fn elements(picture: &str) -> Vec<Element> {
    let mut reader = Reader::from_str(picture);
    let mut all: Vec<Element> = Vec::new();
    let mut depth = 0_i32;
    loop {
        let event = reader.read_event().expect("well-formed");
        match &event {
            Event::Start(start) | Event::Empty(start) => {
                depth += i32::from(matches!(event, Event::Start(_)));
                let attributes = start.attributes().map(|a| {
                    let a = a.expect("an attribute");
                    (a.key.as_ref().to_owned(), a.value.into_owned())
                });
                let attributes = attributes.collect();
                let tag = start.name().as_ref().to_owned();
                all.push(Element { tag, attributes, text: String::new() });
            }
            Event::End(_) => depth -= 1,
            Event::Text(text) if &**text == "\n" => {}
            Event::Text(text) => {
                all.last_mut().unwrap().text += text;
            }
            Event::GeneralRef(name) => {
                all.last_mut().unwrap().text.extend(["&", name, ";"]);
            }
            Event::Eof => break,
            other => panic!("not in a picture: {other:?}"),
        }
    }
    assert_eq!(depth, 0);
    all
}
